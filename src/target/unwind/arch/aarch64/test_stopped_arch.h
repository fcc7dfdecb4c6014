// SPDX-License-Identifier: MIT
// test_stopped_arch (AArch64): the registers of a stopped thread, as a walk begins with them.
#pragma once

#include <sys/user.h>

#include "registers_arch.h"
#include "target/unwind/cfi/cpu.h"

static inline struct cpu test_stopped_cpu(const struct user_regs_struct *regs)
{
    struct cpu cpu = {.pc = regs->pc + 1};
    for (unsigned i = 0; i < ARCH_REG_SP; i++) {
        cpu_set(&cpu, i, regs->regs[i]);
    }
    cpu_set(&cpu, ARCH_REG_SP, regs->sp);
    return cpu;
}
