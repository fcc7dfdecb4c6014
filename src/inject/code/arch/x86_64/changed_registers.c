// SPDX-License-Identifier: MIT
// changed_registers: see changed_registers.h. With Zydis as the decoder.
#include "inject/code/changed_registers.h"

#include <Zydis/Zydis.h>
#include <stddef.h>

enum {
    FUNCTIONS_MAX = 64,
    BLOCKS_MAX = 512, // of a function
    STEPS_MAX = 10000,
};

// By their numbers in instructions: rax, rcx, rdx, rsi, rdi, r8 to r11 (System V psABI 3.2.3).
#define CHANGEABLE 0x0fc7u

struct function {
    uint64_t addr;
    uint32_t kept; // registers that a caller may restore
};

struct walk {
    const struct changed_source *source;
    ZydisDecoder decoder;
    uint32_t changed;
    uint32_t steps;
    struct function functions[FUNCTIONS_MAX]; // each begins at another address
    size_t function_count;
    // Of the current function: the beginnings of its blocks, and registers.
    uint64_t blocks[BLOCKS_MAX];
    size_t block_count;
    uint32_t written;
    uint32_t pushed;
};

static void note_function(struct walk *walk, uint64_t addr)
{
    for (size_t i = 0; i < walk->function_count; i++) {
        if (walk->functions[i].addr == addr) {
            return;
        }
    }
    if (walk->function_count < FUNCTIONS_MAX) {
        walk->functions[walk->function_count++] = (struct function){.addr = addr};
    }
}

static void note_block(struct walk *walk, uint64_t addr)
{
    for (size_t i = 0; i < walk->block_count; i++) {
        if (walk->blocks[i] == addr) {
            return;
        }
    }
    if (walk->block_count < BLOCKS_MAX) {
        walk->blocks[walk->block_count++] = addr;
    }
}

static uint32_t bit_of(ZydisRegister name)
{
    const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, name);
    return ZydisRegisterGetClass(whole) == ZYDIS_REGCLASS_GPR64
               ? 1u << (unsigned)ZydisRegisterGetId(whole)
               : 0;
}

static void note_registers(struct walk *walk,
                           const ZydisDecodedInstruction *decoded,
                           const ZydisDecodedOperand *operands)
{
    for (size_t i = 0; i < decoded->operand_count; i++) {
        const ZydisDecodedOperand *operand = operands + i;
        if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER) {
            continue;
        }
        if (decoded->mnemonic == ZYDIS_MNEMONIC_PUSH) {
            walk->pushed |= bit_of(operand->reg.value);
        } else if ((operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0) {
            walk->written |= bit_of(operand->reg.value);
        }
    }
}

// Return where the path goes on behind the instruction at `addr`; 0: it ends there.
static uint64_t step(struct walk *walk, uint64_t addr)
{
    uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
    ZydisDecodedInstruction decoded;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    const struct code_reader *code = &walk->source->code;
    const size_t len = code->read(code->context, addr, bytes, sizeof(bytes));
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&walk->decoder, bytes, len, &decoded, operands))) {
        return 0;
    }
    note_registers(walk, &decoded, operands);
    const uint64_t next = addr + decoded.length;
    const bool is_direct = decoded.raw.imm[0].size != 0 && decoded.raw.imm[0].is_relative;
    const uint64_t target = is_direct ? next + (uint64_t)decoded.raw.imm[0].value.s : 0;
    switch (decoded.meta.category) {
    case ZYDIS_CATEGORY_CALL:
        if (is_direct) {
            note_function(walk, target);
        }
        return walk->source->is_same_function(code->context, addr, next) ? next : 0;
    case ZYDIS_CATEGORY_UNCOND_BR:
        if (is_direct) {
            note_block(walk, target);
        }
        return 0;
    case ZYDIS_CATEGORY_COND_BR:
        note_block(walk, target);
        return next;
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_INTERRUPT:
        return 0;
    default:
        return decoded.mnemonic == ZYDIS_MNEMONIC_UD2 || decoded.mnemonic == ZYDIS_MNEMONIC_HLT
                   ? 0
                   : next;
    }
}

// Add what a function changes, and note the functions that it calls.
static void walk_function(struct walk *walk, struct function function)
{
    const size_t first = walk->function_count;
    walk->block_count = 0;
    walk->written = 0;
    walk->pushed = 0;
    note_block(walk, function.addr);
    for (size_t i = 0; i < walk->block_count; i++) {
        uint64_t at = walk->blocks[i];
        while (at != 0 && walk->steps < STEPS_MAX) {
            walk->steps++;
            at = step(walk, at);
        }
    }
    const uint32_t kept = function.kept | walk->pushed;
    walk->changed |= walk->written & ~kept;
    for (size_t i = first; i < walk->function_count; i++) {
        walk->functions[i].kept = kept;
    }
}

bool changed_registers_are_all(uint64_t addr, const struct changed_source *source)
{
    struct walk walk = {.source = source};
    (void)ZydisDecoderInit(&walk.decoder, ZYDIS_MACHINE_MODE_LONG_64,
                           ZYDIS_STACK_WIDTH_64); // cannot fail
    note_function(&walk, addr);
    for (size_t i = 0; i < walk.function_count && (walk.changed & CHANGEABLE) != CHANGEABLE; i++) {
        walk_function(&walk, walk.functions[i]);
    }
    return (walk.changed & CHANGEABLE) == CHANGEABLE;
}
