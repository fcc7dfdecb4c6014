// SPDX-License-Identifier: MIT
#include "target/unwind/cfi/expression.h"

#include "base/cursor.h"

enum expression_op {
    OP_ADDR = 0x03,
    OP_DEREF = 0x06,
    OP_CONST1U = 0x08,
    OP_CONST1S = 0x09,
    OP_CONST2U = 0x0a,
    OP_CONST2S = 0x0b,
    OP_CONST4U = 0x0c,
    OP_CONST4S = 0x0d,
    OP_CONST8U = 0x0e,
    OP_CONST8S = 0x0f,
    OP_CONSTU = 0x10,
    OP_CONSTS = 0x11,
    OP_DUP = 0x12,
    OP_DROP = 0x13,
    OP_OVER = 0x14,
    OP_PICK = 0x15,
    OP_SWAP = 0x16,
    OP_ROT = 0x17,
    OP_ABS = 0x19,
    OP_AND = 0x1a,
    OP_DIV = 0x1b,
    OP_MINUS = 0x1c,
    OP_MOD = 0x1d,
    OP_MUL = 0x1e,
    OP_NEG = 0x1f,
    OP_NOT = 0x20,
    OP_OR = 0x21,
    OP_PLUS = 0x22,
    OP_PLUS_UCONST = 0x23,
    OP_SHL = 0x24,
    OP_SHR = 0x25,
    OP_SHRA = 0x26,
    OP_XOR = 0x27,
    OP_BRA = 0x28,
    OP_EQ = 0x29,
    OP_GE = 0x2a,
    OP_GT = 0x2b,
    OP_LE = 0x2c,
    OP_LT = 0x2d,
    OP_NE = 0x2e,
    OP_SKIP = 0x2f,
    OP_LIT0 = 0x30,
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f,
    OP_BREGX = 0x92,
    OP_DEREF_SIZE = 0x94,
    OP_NOP = 0x96,
};

#define STACK_TERMS 16u

struct machine {
    struct cursor code;
    const struct expression_world *world;
    enum err err; // the first failure; later operations do nothing
    unsigned depth;
    struct term stack[STACK_TERMS];
};

static void fail(struct machine *m, enum err err)
{
    if (m->err == ERR_OK) {
        m->err = err;
    }
}

static void push(struct machine *m, struct term term)
{
    if (m->depth == STACK_TERMS) {
        fail(m, ERR_LIMIT);
        return;
    }
    m->stack[m->depth++] = term;
}

static void push_number(struct machine *m, uint64_t number)
{
    push(m, (struct term){.offset = number});
}

static struct term pop(struct machine *m)
{
    if (m->depth == 0) {
        fail(m, ERR_CORRUPT);
        return (struct term){0};
    }
    return m->stack[--m->depth];
}

static bool is_number(struct term term)
{
    return term.base == TERM_NUMBER && !term.deref;
}

static void push_copy(struct machine *m, unsigned from_top)
{
    if (from_top >= m->depth) {
        fail(m, ERR_CORRUPT);
        return;
    }
    push(m, m->stack[m->depth - 1 - from_top]);
}

static void push_register(struct machine *m, uint64_t reg, int64_t offset)
{
    const struct cpu *cpu = m->world->cpu;
    if (reg == ARCH_REG_PC) {
        push_number(m, m->world->pc + (uint64_t)offset);
    } else if (cpu != NULL && cpu_knows(cpu, reg)) {
        push_number(m, cpu->value[reg] + (uint64_t)offset);
    } else if (cpu == NULL && (reg == ARCH_REG_SP || reg == ARCH_REG_FP)) {
        enum term_base base = reg == ARCH_REG_SP ? TERM_SP : TERM_FP;
        push(m, (struct term){.base = base, .offset = (uint64_t)offset});
    } else {
        fail(m, ERR_UNSUPPORTED);
    }
}

static void dereference(struct machine *m, unsigned size_bytes)
{
    struct term term = pop(m);
    if (size_bytes == 0 || size_bytes > 8) {
        fail(m, ERR_CORRUPT);
        return;
    }
    if (m->world->cpu == NULL) {
        if (term.deref || term.base == TERM_NUMBER || size_bytes != 8) {
            fail(m, ERR_UNSUPPORTED);
            return;
        }
        term.deref = true;
        push(m, term);
        return;
    }
    // A shorter access may end where the mapping does, so read the aligned word around it.
    uint64_t skipped = size_bytes < 8 ? term.offset & 7 : 0;
    uint64_t word = 0;
    if (!is_number(term) || skipped + size_bytes > 8 || m->err != ERR_OK ||
        !m->world->memory->read(m->world->memory, term.offset - skipped, &word)) {
        fail(m, ERR_IO);
        return;
    }
    word >>= skipped * 8;
    push_number(m, size_bytes < 8 ? word & (((uint64_t)1 << size_bytes * 8) - 1) : word);
}

static void rotate(struct machine *m)
{
    struct term top = pop(m);
    struct term second = pop(m);
    struct term third = pop(m);
    push(m, top);
    push(m, third);
    push(m, second);
}

// Numbers can be added to and subtracted from symbols.
static void add(struct machine *m, struct term a, struct term b)
{
    if (is_number(a)) {
        struct term swapped = a;
        a = b;
        b = swapped;
    }
    if (!is_number(b) || a.deref) {
        fail(m, ERR_UNSUPPORTED);
        return;
    }
    a.offset += b.offset;
    push(m, a);
}

static uint64_t shift(uint8_t op, uint64_t a, uint64_t b)
{
    bool out_of_range = b >= 64;
    switch (op) {
    case OP_SHL:
        return out_of_range ? 0 : a << b;
    case OP_SHR:
        return out_of_range ? 0 : a >> b;
    default:
        return (uint64_t)((int64_t)a >> (out_of_range ? 63 : b));
    }
}

static bool compare(uint8_t op, int64_t a, int64_t b)
{
    switch (op) {
    case OP_EQ:
        return a == b;
    case OP_GE:
        return a >= b;
    case OP_GT:
        return a > b;
    case OP_LE:
        return a <= b;
    case OP_LT:
        return a < b;
    default:
        return a != b;
    }
}

static void divide(struct machine *m, uint8_t op, uint64_t a, uint64_t b)
{
    if (b == 0) {
        fail(m, ERR_CORRUPT);
    } else if (op == OP_MOD) {
        push_number(m, a % b);
    } else { // signed; the one quotient that does not fit wraps
        push_number(m, b == UINT64_MAX ? 0 - a : (uint64_t)((int64_t)a / (int64_t)b));
    }
}

static void binary(struct machine *m, uint8_t op)
{
    struct term b = pop(m);
    struct term a = pop(m);
    if (op == OP_PLUS) {
        add(m, a, b);
        return;
    }
    if (op == OP_MINUS && is_number(b) && !a.deref) {
        a.offset -= b.offset;
        push(m, a);
        return;
    }
    if (!is_number(a) || !is_number(b)) {
        fail(m, ERR_UNSUPPORTED);
        return;
    }
    switch (op) {
    case OP_AND:
        push_number(m, a.offset & b.offset);
        return;
    case OP_OR:
        push_number(m, a.offset | b.offset);
        return;
    case OP_XOR:
        push_number(m, a.offset ^ b.offset);
        return;
    case OP_MUL:
        push_number(m, a.offset * b.offset);
        return;
    case OP_DIV:
    case OP_MOD:
        divide(m, op, a.offset, b.offset);
        return;
    case OP_SHL:
    case OP_SHR:
    case OP_SHRA:
        push_number(m, shift(op, a.offset, b.offset));
        return;
    default:
        push_number(m, compare(op, (int64_t)a.offset, (int64_t)b.offset));
    }
}

static void unary(struct machine *m, uint8_t op)
{
    struct term a = pop(m);
    if (!is_number(a)) {
        fail(m, ERR_UNSUPPORTED);
        return;
    }
    bool negate = op == OP_NEG || (op == OP_ABS && (int64_t)a.offset < 0);
    if (op == OP_NOT) {
        push_number(m, ~a.offset);
    } else {
        push_number(m, negate ? 0 - a.offset : a.offset);
    }
}

// Forward branches only: CFI contains no loops, and so every expression ends.
static void branch(struct machine *m, bool conditional)
{
    int16_t distance = (int16_t)cursor_u16(&m->code);
    bool taken = true;
    if (conditional) {
        struct term condition = pop(m);
        taken = condition.offset != 0;
        if (!is_number(condition)) {
            fail(m, ERR_UNSUPPORTED);
        }
    }
    if (distance < 0) {
        fail(m, ERR_UNSUPPORTED);
    } else if (taken) {
        (void)cursor_take(&m->code, (size_t)distance);
    }
}

// Push a constant that follows in the code.
static uint64_t constant(struct cursor *c, uint8_t op)
{
    switch (op) {
    case OP_CONST1U:
        return cursor_u8(c);
    case OP_CONST1S:
        return (uint64_t)(int64_t)(int8_t)cursor_u8(c);
    case OP_CONST2U:
        return cursor_u16(c);
    case OP_CONST2S:
        return (uint64_t)(int64_t)(int16_t)cursor_u16(c);
    case OP_CONST4U:
        return cursor_u32(c);
    case OP_CONST4S:
        return (uint64_t)(int64_t)(int32_t)cursor_u32(c);
    case OP_CONSTU:
        return cursor_uleb(c);
    case OP_CONSTS:
        return (uint64_t)cursor_sleb(c);
    default:
        return cursor_u64(c);
    }
}

static void execute_plain(struct machine *m, uint8_t op)
{
    struct cursor *c = &m->code;
    switch (op) {
    case OP_DEREF:
        dereference(m, 8);
        return;
    case OP_DEREF_SIZE:
        dereference(m, cursor_u8(c));
        return;
    case OP_DUP:
        push_copy(m, 0);
        return;
    case OP_DROP:
        (void)pop(m);
        return;
    case OP_OVER:
        push_copy(m, 1);
        return;
    case OP_PICK:
        push_copy(m, cursor_u8(c));
        return;
    case OP_SWAP: {
        struct term top = pop(m);
        struct term second = pop(m);
        push(m, top);
        push(m, second);
        return;
    }
    case OP_ROT:
        rotate(m);
        return;
    case OP_PLUS_UCONST:
        push_number(m, cursor_uleb(c));
        binary(m, OP_PLUS);
        return;
    case OP_BREGX: {
        uint64_t reg = cursor_uleb(c);
        push_register(m, reg, cursor_sleb(c));
        return;
    }
    case OP_BRA:
    case OP_SKIP:
        branch(m, op == OP_BRA);
        return;
    case OP_NOP:
        return;
    default:
        fail(m, ERR_UNSUPPORTED);
    }
}

static void execute(struct machine *m, uint8_t op)
{
    if (op >= OP_LIT0 && op <= OP_LIT31) {
        push_number(m, (uint64_t)op - OP_LIT0);
    } else if (op >= OP_BREG0 && op <= OP_BREG31) {
        push_register(m, (uint64_t)op - OP_BREG0, cursor_sleb(&m->code));
    } else if (op == OP_ADDR || (op >= OP_CONST1U && op <= OP_CONSTS)) {
        push_number(m, constant(&m->code, op));
    } else if (op == OP_ABS || op == OP_NEG || op == OP_NOT) {
        unary(m, op);
    } else if ((op >= OP_AND && op <= OP_XOR && op != OP_PLUS_UCONST) ||
               (op >= OP_EQ && op <= OP_NE)) {
        binary(m, op);
    } else {
        execute_plain(m, op);
    }
}

enum err expression_evaluate(struct bytes code,
                             const struct expression_world *world,
                             const struct term *initial,
                             struct term *out)
{
    struct machine m;
    m.code = cursor_over(code);
    m.world = world;
    m.err = ERR_OK;
    m.depth = 0;
    if (initial != NULL) {
        push(&m, *initial);
    }
    while (cursor_left(&m.code) > 0 && !m.code.failed && m.err == ERR_OK) {
        execute(&m, cursor_u8(&m.code));
    }
    struct term result = pop(&m);
    if (m.code.failed) {
        return ERR_CORRUPT;
    }
    if (m.err == ERR_OK) {
        *out = result;
    }
    return m.err;
}
