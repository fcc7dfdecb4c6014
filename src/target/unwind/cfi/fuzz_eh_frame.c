// SPDX-License-Identifier: MIT
// fuzz_eh_frame: reads hostile unwind tables.
//
// Input: byte 0 is the place of .eh_frame_hdr (in 256ths) and byte 1 the pc to find (in units of 8
// bytes), the rest is the image. Every entry is read; every function's row at three places is
// executed, compiled into a rule and stepped by, with a memory that cannot always be read. Seeds:
// tests/fuzz/corpus/eh_frame, written by tests/fuzz/eh_frame_seeds.py.
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "target/unwind/cfi/cfi.h"
#include "target/unwind/cfi/eh_frame.h"
#include "target/unwind/cfi/rule.h"
#include "target/unwind/cfi/rule_compile.h"
#include "target/unwind/walk/step.h"

#define IMAGE_ADDR ((uint64_t)0x400000)
#define CODE_ADDR  ((uint64_t)0x401000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_imaginary(struct memory_reader *self, uint64_t addr, uint64_t *word)
{
    (void)self;
    *word = hash_mix(addr);
    return addr % 16 != 8;
}

static bool load_imaginary(void *context, uint64_t addr, uint64_t *word)
{
    return read_imaginary(context, addr, word);
}

static void run_row(const struct eh_function *function, uint64_t pc)
{
    struct memory_reader memory = {.read = read_imaginary};
    struct cfi_row row;
    if (cfi_row_at(function, pc, &row) != ERR_OK) {
        return;
    }
    struct cpu cpu = {.pc = pc + 1, .known = hash_mix(pc)};
    for (unsigned i = 0; i < ARCH_REG_COUNT; i++) {
        cpu.value[i] = hash_mix(pc + i);
    }
    struct frame_regs regs = {
        .pc = pc + 1, .sp = cpu.value[ARCH_REG_SP], .fp = cpu.value[ARCH_REG_FP]};
    bool last = false;
    enum err err = cfi_step(function, &row, &memory, &cpu, &last);
    uint64_t rule = rule_from_row(function, &row, pc);
    if ((rule & RULE_STOP) == 0 && step_rule(rule, &regs, load_imaginary, NULL) == STEP_OK &&
        err == ERR_OK && regs.pc != cpu.pc) {
        __builtin_trap(); // the two ways to step disagree
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    size_t len = size - 2;
    const struct eh_table table = {.image = {.bytes = {data + 2, len}, .addr = IMAGE_ADDR},
                                   .hdr_addr = IMAGE_ADDR + len * data[0] / 256};
    (void)rule_from_table(&table, CODE_ADDR + (uint64_t)data[1] * 8);
    uint64_t addr = eh_first(&table);
    unsigned budget = 64;
    for (uint64_t next = addr; budget > 0 && eh_next(&table, &next); addr = next, budget--) {
        struct eh_function function;
        if (eh_read_fde(&table, addr, &function) == ERR_OK) {
            run_row(&function, function.start);
            run_row(&function, function.start + (function.end - function.start) / 2);
            run_row(&function, function.end - 1);
        }
    }
    return 0;
}
