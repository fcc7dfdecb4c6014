// SPDX-License-Identifier: MIT
// machine_arch (AArch64): the machine-dependent part of the tests of the walk.
#pragma once

#include <stdint.h>
#include <ucontext.h>

// uint64_t generated(a, b, uint64_t (*call)(a, b)), with a frame record and no tables:
// stp x29, x30, [sp, #-16]!; mov x29, sp; blr x2; ldp x29, x30, [sp], #16; ret
static const uint32_t machine_generated_code[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0040, 0xa8c17bfd,
                                                  0xd65f03c0};

// The code that handlers return to: mov x8, #139; svc #0
static const uint32_t machine_sigreturn_code[] = {0xd2801168, 0xd4000001};

// A flag of the kernel's sigaction: `restorer` is valid.
#define MACHINE_SA_RESTORER 0x04000000u

// Return the return address of the function of a context that makecontext() made.
static inline uint64_t machine_entry_pc(const ucontext_t *context)
{
    return context->uc_mcontext.regs[30];
}

// The kernel sets it here, not libc; the oracle of this machine recognizes it.
static inline uint64_t machine_restorer(int number)
{
    (void)number;
    return 0;
}
