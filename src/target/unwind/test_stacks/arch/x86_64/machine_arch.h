// SPDX-License-Identifier: MIT
// machine_arch (x86-64): the machine-dependent part of the tests of the walk.
#pragma once

#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

// uint64_t generated(a, b, uint64_t (*call)(a, b)), with a frame pointer and no tables:
// push %rbp; mov %rsp,%rbp; call *%rdx; pop %rbp; ret
static const uint8_t machine_generated_code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd2, 0x5d, 0xc3};

// The code that handlers return to: mov $15, %rax; syscall
static const uint8_t machine_sigreturn_code[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00,
                                                 0x00, 0x00, 0x0f, 0x05};

// A flag of the kernel's sigaction: `restorer` is valid.
#define MACHINE_SA_RESTORER 0x04000000u

// Return the return address of the function of a context that makecontext() made.
static inline uint64_t machine_entry_pc(const ucontext_t *context)
{
    return *(const uint64_t *)context->uc_mcontext.gregs[REG_RSP];
}

// Return the address to which handlers return, which libc gives the kernel.
static inline uint64_t machine_restorer(int number)
{
    struct {
        uint64_t handler;
        uint64_t flags;
        uint64_t restorer;
        uint64_t mask;
    } action = {0};
    return syscall(SYS_rt_sigaction, number, 0, &action, sizeof(action.mask)) == 0 ? action.restorer
                                                                                   : 0;
}
