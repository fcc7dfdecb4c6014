// SPDX-License-Identifier: MIT
// changed_registers: see changed_registers.h. With Zydis as the decoder.
#include "inject/code/changed_registers.h"

#include <Zydis/Zydis.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/hash.h"

enum {
    FUNCTIONS_MAX = 128,
    BLOCKS_MAX = 512,  // of a function
    EVENTS_MAX = 4096, // likewise
    STEPS_MAX = 20000,
    COPIES_MAX = 64,
    REGISTERS = 16,
    NONE = -1,
};

// By their numbers in instructions: rax, rcx, rdx, rsi, rdi, r8 to r11 (System V psABI 3.2.3).
#define CHANGEABLE 0x0fc7u

// Values of registers are named by the register that had them first.
#define RAX     0u
#define RSP     4u
#define UNKNOWN UINT8_MAX

enum place_kind {
    PLACE_NONE,
    PLACE_REGISTER, // `key` is its number
    PLACE_SLOT,     // memory on the stack, `key` bytes from where %rsp was first
    PLACE_STACK,    // memory on the stack, at an unknown distance
    PLACE_OTHER,    // other memory or a vector register; `key` tells them apart
};

struct place {
    enum place_kind kind;
    uint64_t key;
};

// A first value outside of the general registers.
struct copy {
    struct place place;
    uint8_t value;
};

// Where a register points to.
struct pointer {
    bool is_stack;     // to the stack
    bool is_known;     // at this distance from where %rsp was first
    uint64_t distance; // 0 if it is not known
};

// What is known where the walk has come to.
struct state {
    uint8_t values[REGISTERS]; // or UNKNOWN
    struct pointer pointers[REGISTERS];
};

struct function {
    uint64_t addr;
    uint32_t kept; // registers that each caller may restore after the call
};

// What instructions do, in this order.
struct event {
    uint32_t written;
    uint32_t read_back; // written with the value that the function began with
    int32_t function;   // index of the one that it calls, or NONE
    int32_t block;      // index of the one that it may go on at, or NONE
    bool is_cut;        // it goes on unseen
};

struct block {
    uint64_t addr;
    struct state state; // of the path on which the walk came here first
    uint32_t read_back; // registers that are read back here or later, on some path
    size_t first_event;
    size_t event_count;
};

struct walk {
    const struct changed_source *source;
    ZydisDecoder decoder;
    uint32_t changed;
    uint32_t steps;
    struct function functions[FUNCTIONS_MAX]; // each begins at another address
    size_t function_count;
    // Of the current function.
    struct block blocks[BLOCKS_MAX];
    size_t block_count;
    struct event events[EVENTS_MAX];
    size_t event_count;
    bool is_lost; // it is too large
    uint32_t pushed;
    uint32_t copied; // registers whose first values some path copied
    struct copy copies[COPIES_MAX];
    size_t copy_count;
};

// Return the index of the function at `addr`; NONE if the table is full.
static int32_t note_function(struct walk *walk, uint64_t addr)
{
    for (size_t i = 0; i < walk->function_count; i++) {
        if (walk->functions[i].addr == addr) {
            return (int32_t)i;
        }
    }
    if (walk->function_count == FUNCTIONS_MAX) {
        return NONE;
    }
    walk->functions[walk->function_count] = (struct function){.addr = addr, .kept = UINT32_MAX};
    return (int32_t)walk->function_count++;
}

// Likewise.
static int32_t note_block(struct walk *walk, uint64_t addr, struct state state)
{
    for (size_t i = 0; i < walk->block_count; i++) {
        if (walk->blocks[i].addr == addr) {
            return (int32_t)i;
        }
    }
    if (walk->block_count == BLOCKS_MAX) {
        return NONE;
    }
    walk->blocks[walk->block_count] = (struct block){.addr = addr, .state = state};
    return (int32_t)walk->block_count++;
}

static uint32_t bit_of(ZydisRegister name)
{
    const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, name);
    return ZydisRegisterGetClass(whole) == ZYDIS_REGCLASS_GPR64
               ? 1u << (unsigned)ZydisRegisterGetId(whole)
               : 0;
}

// Return where a general register points to; NULL for any other register.
static const struct pointer *pointer_in(const struct state *state, ZydisRegister name)
{
    const uint32_t bit = bit_of(name);
    return bit != 0 ? state->pointers + __builtin_ctz(bit) : NULL;
}

static struct pointer moved(struct pointer pointer, uint64_t distance)
{
    pointer.distance += pointer.is_known ? distance : 0;
    return pointer;
}

// Return where the address of a memory operand points to.
static struct pointer address_of(const ZydisDecodedOperandMem *memory, const struct state *state)
{
    const struct pointer *base = pointer_in(state, memory->base);
    const struct pointer *index = pointer_in(state, memory->index);
    if (base != NULL && index == NULL) {
        return moved(*base, (uint64_t)memory->disp.value);
    }
    return (struct pointer){.is_stack = (base != NULL && base->is_stack) ||
                                        (index != NULL && index->is_stack)};
}

static struct place stack_place(struct pointer pointer)
{
    return pointer.is_known ? (struct place){PLACE_SLOT, pointer.distance}
                            : (struct place){PLACE_STACK, 0};
}

// `next` is the address of the next instruction.
static struct place
place_of(const ZydisDecodedOperand *operand, const struct state *state, uint64_t next)
{
    if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER) {
        const uint32_t bit = bit_of(operand->reg.value);
        return bit != 0 ? (struct place){PLACE_REGISTER, (uint64_t)__builtin_ctz(bit)}
                        : (struct place){PLACE_OTHER, (uint64_t)operand->reg.value << 48};
    }
    if (operand->type != ZYDIS_OPERAND_TYPE_MEMORY) {
        return (struct place){0};
    }
    const struct pointer pointer = address_of(&operand->mem, state);
    if (pointer.is_stack) {
        return stack_place(pointer);
    }
    const ZydisRegister base = operand->mem.base;
    const uint64_t displacement = (uint64_t)operand->mem.disp.value;
    const uint64_t address = base == ZYDIS_REGISTER_RIP ? next + displacement : displacement;
    return (struct place){PLACE_OTHER,
                          hash_mix((uint64_t)base << 32 ^ (uint64_t)operand->mem.index) ^ address};
}

static bool is_copy(ZydisMnemonic mnemonic)
{
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_XCHG:
    case ZYDIS_MNEMONIC_MOVQ:
    case ZYDIS_MNEMONIC_VMOVQ:
    case ZYDIS_MNEMONIC_POP:
        return true;
    default:
        return false;
    }
}

static bool may_be_same(struct place one, struct place other)
{
    const bool are_on_stack = (one.kind == PLACE_SLOT || one.kind == PLACE_STACK) &&
                              (other.kind == PLACE_SLOT || other.kind == PLACE_STACK);
    return one.kind == other.kind ? one.key == other.key : are_on_stack;
}

// Return the first value that is at `place`, or UNKNOWN; `wanted` if several may be there.
static uint8_t
value_at(const struct walk *walk, const struct state *state, struct place place, uint8_t wanted)
{
    uint8_t value = UNKNOWN;
    if (place.kind == PLACE_REGISTER) {
        return state->values[place.key];
    }
    for (size_t i = 0; i < walk->copy_count && value != wanted; i++) {
        if (may_be_same(walk->copies[i].place, place)) {
            value = walk->copies[i].value;
        }
    }
    return value;
}

// Note that an instruction copies a value, if it is a first one, to `place`.
static void note_copy(struct walk *walk, uint8_t value, struct place place)
{
    if (value == UNKNOWN || (place.kind == PLACE_REGISTER && place.key == value)) {
        return;
    }
    walk->copied |= 1u << value;
    for (size_t i = 0; i < walk->copy_count; i++) {
        const struct copy *copy = walk->copies + i;
        if (copy->value == value && copy->place.kind == place.kind &&
            copy->place.key == place.key) {
            return;
        }
    }
    if (place.kind != PLACE_REGISTER && walk->copy_count == COPIES_MAX) {
        walk->is_lost = true;
    } else if (place.kind != PLACE_REGISTER) {
        walk->copies[walk->copy_count++] = (struct copy){place, value};
    }
}

// Note that an instruction writes a register.
static void note_write(struct state *state, uint32_t bit, uint8_t value, struct event *event)
{
    const unsigned number = (unsigned)__builtin_ctz(bit);
    state->values[number] = value;
    if (value == number) {
        event->read_back |= bit;
    } else {
        event->written |= bit;
    }
}

static void note_registers(struct walk *walk,
                           struct state *state,
                           const ZydisDecodedInstruction *decoded,
                           const ZydisDecodedOperand *operands,
                           uint64_t next,
                           struct event *event)
{
    struct place places[2] = {0};
    uint8_t values[2] = {UNKNOWN, UNKNOWN}; // that come to the places
    for (size_t i = 0; i < 2 && i < decoded->operand_count_visible && is_copy(decoded->mnemonic);
         i++) {
        places[i] = place_of(operands + i, state, next);
    }
    if (decoded->mnemonic == ZYDIS_MNEMONIC_POP) {
        places[1] = stack_place(state->pointers[RSP]);
    }
    for (size_t i = 0; i < 2; i++) {
        const uint8_t wanted = places[i].kind == PLACE_REGISTER ? (uint8_t)places[i].key : UNKNOWN;
        values[i] = value_at(walk, state, places[1 - i], wanted);
    }
    for (size_t i = 0; i < decoded->operand_count; i++) {
        const ZydisDecodedOperand *operand = operands + i;
        const uint32_t bit =
            operand->type == ZYDIS_OPERAND_TYPE_REGISTER ? bit_of(operand->reg.value) : 0;
        if (decoded->mnemonic == ZYDIS_MNEMONIC_PUSH) {
            walk->pushed |= bit;
        } else if (bit != 0 && (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0) {
            note_write(state, bit,
                       i < decoded->operand_count_visible && i < 2 ? values[i] : UNKNOWN, event);
        }
    }
    note_copy(walk, values[0], places[0]);
    if (decoded->mnemonic == ZYDIS_MNEMONIC_XCHG) {
        note_copy(walk, values[1], places[1]);
    }
}

// Whether an instruction computes with a pointer to the stack.
static bool reads_stack_pointer(const struct state *state,
                                const ZydisDecodedInstruction *decoded,
                                const ZydisDecodedOperand *operands)
{
    bool reads = false;
    for (size_t i = 0; i < decoded->operand_count; i++) {
        const struct pointer *pointer = operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER
                                            ? pointer_in(state, operands[i].reg.value)
                                            : NULL;
        reads = reads || (pointer != NULL && pointer->is_stack &&
                          (operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0);
    }
    return reads;
}

// Return where the register that an instruction writes, or one of them, points to behind it.
static struct pointer written_pointer(const struct state *state,
                                      const ZydisDecodedInstruction *decoded,
                                      const ZydisDecodedOperand *operands)
{
    const struct pointer computed = {.is_stack = reads_stack_pointer(state, decoded, operands)};
    const struct pointer *own = pointer_in(state, operands[0].reg.value);
    const uint64_t immediate =
        decoded->raw.imm[0].size != 0 ? (uint64_t)decoded->raw.imm[0].value.s : 0;
    switch (decoded->mnemonic) {
    case ZYDIS_MNEMONIC_MOV: {
        const bool is_copied = operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
        const struct pointer *from = is_copied ? pointer_in(state, operands[1].reg.value) : NULL;
        return from != NULL ? *from : (struct pointer){0};
    }
    case ZYDIS_MNEMONIC_LEA:
        return address_of(&operands[1].mem, state);
    case ZYDIS_MNEMONIC_ADD:
        return immediate != 0 && own != NULL ? moved(*own, immediate) : computed;
    case ZYDIS_MNEMONIC_SUB:
        return immediate != 0 && own != NULL ? moved(*own, -immediate) : computed;
    default:
        return computed;
    }
}

// Follow the pointers to the stack as far as they move by known distances.
static void note_pointers(struct state *state,
                          const ZydisDecodedInstruction *decoded,
                          const ZydisDecodedOperand *operands,
                          uint32_t written)
{
    const bool is_push = decoded->mnemonic == ZYDIS_MNEMONIC_PUSH;
    const bool is_pop = decoded->mnemonic == ZYDIS_MNEMONIC_POP;
    const struct pointer before = state->pointers[RSP];
    const struct pointer pointer = is_pop || decoded->meta.category == ZYDIS_CATEGORY_CALL
                                       ? (struct pointer){0} // from memory; the result
                                       : written_pointer(state, decoded, operands);
    for (unsigned i = 0; i < REGISTERS; i++) {
        state->pointers[i] = (written >> i & 1u) != 0 ? pointer : state->pointers[i];
    }
    if (is_pop && operands[0].reg.value == ZYDIS_REGISTER_RSP) {
        state->pointers[RSP] = pointer;
    } else if ((is_push || is_pop) && decoded->operand_width == 64) {
        state->pointers[RSP] = moved(before, is_push ? (uint64_t)-8 : 8);
    } else if (decoded->meta.category == ZYDIS_CATEGORY_CALL) {
        state->pointers[RSP] = before;
    }
    state->pointers[RSP].is_stack = true;
}

// Return where the path goes on behind a call; 0: it ends there, or goes on unseen.
static uint64_t behind_call(struct walk *walk, uint64_t addr, uint64_t next, struct event *event)
{
    const struct changed_source *source = walk->source;
    const uint64_t function = source->function_of(source->code.context, addr);
    event->is_cut = function == 0;
    return function != 0 && function == source->function_of(source->code.context, next) ? next : 0;
}

// Return where the path goes on behind the instruction at `addr`; 0: it ends there.
static uint64_t step(struct walk *walk, uint64_t addr, struct state *state, struct event *event)
{
    uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
    ZydisDecodedInstruction decoded;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    const struct code_reader *code = &walk->source->code;
    const size_t len = code->read(code->context, addr, bytes, sizeof(bytes));
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&walk->decoder, bytes, len, &decoded, operands))) {
        event->is_cut = true;
        return 0;
    }
    const uint64_t next = addr + decoded.length;
    note_registers(walk, state, &decoded, operands, next, event);
    note_pointers(state, &decoded, operands, event->written | event->read_back);
    const bool is_direct = decoded.raw.imm[0].size != 0 && decoded.raw.imm[0].is_relative;
    const uint64_t target = is_direct ? next + (uint64_t)decoded.raw.imm[0].value.s : 0;
    switch (decoded.meta.category) {
    case ZYDIS_CATEGORY_CALL:
        event->function = is_direct ? note_function(walk, target) : NONE;
        state->values[RAX] = UNKNOWN; // the result
        return behind_call(walk, addr, next, event);
    case ZYDIS_CATEGORY_UNCOND_BR:
    case ZYDIS_CATEGORY_COND_BR:
        event->block = is_direct ? note_block(walk, target, *state) : NONE;
        event->is_cut = event->block == NONE;
        return decoded.meta.category == ZYDIS_CATEGORY_COND_BR ? next : 0;
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_INTERRUPT:
        return 0;
    default:
        return decoded.mnemonic == ZYDIS_MNEMONIC_UD2 || decoded.mnemonic == ZYDIS_MNEMONIC_HLT
                   ? 0
                   : next;
    }
}

// Append an event to those of the last block. Instructions that only write need none of their own.
static void append_event(struct walk *walk, struct block *block, struct event event)
{
    struct event *last = walk->events + walk->event_count - 1;
    if (block->event_count > 0 && last->read_back == 0 && last->function == NONE &&
        last->block == NONE && !last->is_cut) {
        event.written |= last->written;
        *last = event;
    } else {
        walk->events[walk->event_count++] = event;
        block->event_count++;
    }
}

// Follow a path from the beginning of a block on.
static void walk_block(struct walk *walk, struct block *block)
{
    struct state state = block->state;
    block->first_event = walk->event_count;
    for (uint64_t at = block->addr; at != 0;) {
        if (walk->event_count == EVENTS_MAX || walk->steps == STEPS_MAX) {
            walk->is_lost = true;
            return;
        }
        walk->steps++;
        struct event event = {.function = NONE, .block = NONE};
        at = step(walk, at, &state, &event);
        append_event(walk, block, event);
    }
}

// Return what may be read back behind an event, if `next` may be behind the next instruction.
static uint32_t read_back_behind(const struct walk *walk, const struct event *event, uint32_t next)
{
    const uint32_t there = event->block != NONE ? walk->blocks[event->block].read_back : 0;
    return next | there | (event->is_cut ? walk->copied : 0);
}

// Look from the end of each block to its beginning. Return whether that has changed anything.
static bool find_read_back(struct walk *walk)
{
    bool has_changed = false;
    for (size_t i = walk->block_count; i-- > 0;) {
        struct block *block = walk->blocks + i;
        uint32_t read_back = 0;
        for (size_t k = block->event_count; k-- > 0;) {
            const struct event *event = walk->events + block->first_event + k;
            read_back = read_back_behind(walk, event, read_back) | event->read_back;
        }
        has_changed = has_changed || read_back != block->read_back;
        block->read_back = read_back;
    }
    return has_changed;
}

// Add what a block changes for good, and note what its function restores for those that it calls.
static void count_block(struct walk *walk, const struct block *block, uint32_t kept)
{
    uint32_t read_back = 0;
    for (size_t k = block->event_count; k-- > 0;) {
        const struct event *event = walk->events + block->first_event + k;
        read_back = read_back_behind(walk, event, read_back);
        if (event->function != NONE) {
            walk->functions[event->function].kept &= kept | read_back;
        }
        read_back |= event->read_back;
        walk->changed |= event->written & ~(kept | read_back);
    }
}

// Add what a function changes, and note the functions that it calls.
static void walk_function(struct walk *walk, struct function function)
{
    walk->block_count = 0;
    walk->event_count = 0;
    walk->is_lost = false;
    walk->pushed = 0;
    walk->copied = 0;
    walk->copy_count = 0;
    struct state state = {.pointers[RSP] = {.is_stack = true, .is_known = true}};
    for (size_t i = 0; i < REGISTERS; i++) {
        state.values[i] = (uint8_t)i;
    }
    (void)note_block(walk, function.addr, state); // there is room
    for (size_t i = 0; i < walk->block_count && !walk->is_lost; i++) {
        walk_block(walk, walk->blocks + i);
    }
    if (walk->is_lost) {
        return;
    }
    while (find_read_back(walk)) {
    }
    for (size_t i = 0; i < walk->block_count; i++) {
        count_block(walk, walk->blocks + i, function.kept | walk->pushed);
    }
}

bool changed_registers_are_all(uint64_t addr, const struct changed_source *source)
{
    struct walk *walk = calloc(1, sizeof(*walk)); // too large for a small stack
    if (walk == NULL) {
        return false;
    }
    walk->source = source;
    (void)ZydisDecoderInit(&walk->decoder, ZYDIS_MACHINE_MODE_LONG_64,
                           ZYDIS_STACK_WIDTH_64); // cannot fail
    (void)note_function(walk, addr);              // there is room
    walk->functions[0].kept = 0;
    for (size_t i = 0; i < walk->function_count && (~walk->changed & CHANGEABLE) != 0; i++) {
        walk_function(walk, walk->functions[i]);
    }
    const bool are_all = (~walk->changed & CHANGEABLE) == 0;
    free(walk);
    return are_all;
}
