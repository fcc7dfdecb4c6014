// SPDX-License-Identifier: MIT
#include "target/unwind/environment/signal_frame.h"

#include "signal_arch.h"
#include "strip_arch.h"
#include "stub_arch.h"
#include "target/unwind/cfi/rule.h"

bool signal_frame_begins(struct memory_reader *memory, uint64_t pc)
{
    uint64_t code = 0;
    return memory->read(memory, pc, &code) && code == ARCH_SIGRETURN_CODE;
}

bool signal_frame_is_in_stub(struct memory_reader *memory, uint64_t pc)
{
    for (uint64_t i = 0; i != ARCH_STUB_INSTRUCTIONS_MAX; i++) {
        uint64_t word = 0;
        if (!memory->read(memory, pc + 4 * i, &word)) {
            return false;
        }
        if ((uint32_t)word == ARCH_STUB_END) {
            return true;
        }
        if (!arch_is_in_stub((uint32_t)word)) {
            return false;
        }
    }
    return false;
}

enum err signal_frame_step_from_stub(struct cpu *cpu)
{
    if (!cpu_knows(cpu, ARCH_STUB_RETURN)) {
        return ERR_UNSUPPORTED;
    }
    cpu->pc = arch_strip(cpu->value[ARCH_STUB_RETURN]);
    return ERR_OK;
}

uint64_t signal_frame_rule(void)
{
    return rule_of(
        RULE_CFA_DEREF | RULE_FP_SAVED | RULE_FP_FROM_BASE | RULE_RET_FROM_BASE | RULE_SIGNAL,
        arch_signal_register(ARCH_REG_SP), arch_signal_register(ARCH_REG_FP), ARCH_SIGNAL_PC);
}

enum err signal_frame_step(struct memory_reader *memory, struct cpu *cpu)
{
    const uint64_t frame = cpu->value[ARCH_REG_SP];
    struct cpu interrupted = {.known = 0};
    uint64_t value = 0;
    for (unsigned reg = 0; reg < ARCH_SIGNAL_REGISTERS; reg++) {
        if (!memory->read(memory, frame + (uint64_t)arch_signal_register(reg), &value)) {
            return ERR_IO;
        }
        cpu_set(&interrupted, reg, value);
    }
    if (!memory->read(memory, frame + ARCH_SIGNAL_PC, &value)) {
        return ERR_IO;
    }
    interrupted.pc = value + 1; // not a return address: see unwind.h
    *cpu = interrupted;
    return ERR_OK;
}
