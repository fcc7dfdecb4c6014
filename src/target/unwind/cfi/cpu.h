// SPDX-License-Identifier: MIT
// cpu: the full register state of one frame; each register may be unknown.
//
// Only the interpreter needs it (precise_walk.h); compact rules only need pc, sp and fp. Context: T
// and H; pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "registers_arch.h"

struct cpu {
    uint64_t pc;                    // to be looked up at pc - 1, as in unwind.h
    uint64_t known;                 // bit n: value[n] is the register's value in this frame
    uint64_t value[ARCH_REG_COUNT]; // by DWARF number
};

static inline bool cpu_knows(const struct cpu *cpu, uint64_t reg)
{
    return reg < ARCH_REG_COUNT && (cpu->known >> reg & 1) != 0;
}

static inline void cpu_set(struct cpu *cpu, unsigned reg, uint64_t value)
{
    cpu->value[reg] = value;
    cpu->known |= (uint64_t)1 << reg;
}
