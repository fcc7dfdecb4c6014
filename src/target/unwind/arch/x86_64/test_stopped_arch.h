// SPDX-License-Identifier: MIT
// test_stopped_arch (x86-64): the registers of a stopped thread, as a walk begins with them.
#pragma once

#include <stdint.h>
#include <sys/user.h>

#include "registers_arch.h"
#include "target/unwind/cfi/cpu.h"

static inline struct cpu test_stopped_cpu(const struct user_regs_struct *regs)
{
    struct cpu cpu = {.pc = regs->rip + 1};
    const uint64_t values[ARCH_REG_PC] = {
        regs->rax, regs->rdx, regs->rcx, regs->rbx, regs->rsi, regs->rdi, regs->rbp, regs->rsp,
        regs->r8,  regs->r9,  regs->r10, regs->r11, regs->r12, regs->r13, regs->r14, regs->r15};
    for (unsigned i = 0; i < ARCH_REG_PC; i++) {
        cpu_set(&cpu, i, values[i]);
    }
    return cpu;
}
