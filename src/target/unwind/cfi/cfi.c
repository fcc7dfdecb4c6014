// SPDX-License-Identifier: MIT
#include "target/unwind/cfi/cfi.h"

#include "base/cursor.h"
#include "strip_arch.h"

enum cfa_op {
    // The two high bits identify these; the low six are an operand.
    CFA_ADVANCE_LOC = 0x40,
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,
    CFA_HIGH_BITS = 0xc0,
    CFA_OPERAND = 0x3f,

    CFA_NOP = 0x00,
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE_LOC1 = 0x02,
    CFA_ADVANCE_LOC2 = 0x03,
    CFA_ADVANCE_LOC4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER_STATE = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEF_CFA = 0x0c,
    CFA_DEF_CFA_REGISTER = 0x0d,
    CFA_DEF_CFA_OFFSET = 0x0e,
    CFA_DEF_CFA_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_CFA_SF = 0x12,
    CFA_DEF_CFA_OFFSET_SF = 0x13,
    CFA_VAL_OFFSET = 0x14,
    CFA_VAL_OFFSET_SF = 0x15,
    CFA_VAL_EXPRESSION = 0x16,
    CFA_AARCH64_NEGATE_RA_STATE = 0x2d,
    CFA_GNU_ARGS_SIZE = 0x2e,
    CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

#define REMEMBERED_ROWS 4u // compilers nest one; hand-written assembly was seen to nest two

struct program {
    const struct eh_function *function;
    struct cursor code;
    uint64_t pc; // pc from which the row under construction is valid
    enum err err;
    unsigned remembered_count;
    struct cfi_row row;
    struct cfi_row initial; // after the CIE's part
    struct cfi_row remembered[REMEMBERED_ROWS];
};

static void fail(struct program *p, enum err err)
{
    if (p->err == ERR_OK) {
        p->err = err;
    }
}

// Set a register's rule. Registers that we do not follow (vector registers, for example) are
// skipped.
static void set_rule(struct program *p, uint64_t reg, enum cfi_kind kind, int64_t value)
{
    if (reg >= ARCH_REG_COUNT) {
        return;
    }
    if (value != (int32_t)value) {
        fail(p, ERR_LIMIT);
        return;
    }
    p->row.kind[reg] = (uint8_t)kind;
    p->row.value[reg] = (int32_t)value;
}

static int64_t factored(const struct program *p, uint64_t operand)
{
    return (int64_t)(operand * (uint64_t)p->function->data_align);
}

// Return the place of the expression at the cursor, and skip it.
static int64_t take_expression(struct program *p)
{
    int64_t place = p->code.at - p->function->image->bytes.data;
    uint64_t len = cursor_uleb(&p->code);
    (void)cursor_take(&p->code, (size_t)len);
    return place;
}

static void restore(struct program *p, uint64_t reg)
{
    if (reg < ARCH_REG_COUNT) {
        p->row.kind[reg] = p->initial.kind[reg];
        p->row.value[reg] = p->initial.value[reg];
    }
}

static void remember_state(struct program *p)
{
    if (p->remembered_count == REMEMBERED_ROWS) {
        fail(p, ERR_LIMIT);
        return;
    }
    p->remembered[p->remembered_count++] = p->row;
}

static void restore_state(struct program *p)
{
    if (p->remembered_count == 0) {
        fail(p, ERR_CORRUPT);
        return;
    }
    p->row = p->remembered[--p->remembered_count];
}

static void define_cfa(struct program *p, uint64_t reg, int64_t offset)
{
    p->row.cfa_is_expression = false;
    p->row.cfa_register = reg < ARCH_REG_COUNT ? (uint32_t)reg : ARCH_REG_COUNT;
    p->row.cfa_value = offset;
}

// DW_CFA_def_cfa_register and _offset are valid only after a register and an offset were defined.
static void change_cfa(struct program *p, uint64_t reg, int64_t offset)
{
    if (p->row.cfa_is_expression) {
        fail(p, ERR_CORRUPT);
        return;
    }
    define_cfa(p, reg, offset);
}

static void execute_register(struct program *p, uint8_t op)
{
    struct cursor *c = &p->code;
    uint64_t reg = cursor_uleb(c);
    switch (op) {
    case CFA_OFFSET_EXTENDED:
        set_rule(p, reg, CFI_OFFSET, factored(p, cursor_uleb(c)));
        return;
    case CFA_OFFSET_EXTENDED_SF:
        set_rule(p, reg, CFI_OFFSET, factored(p, (uint64_t)cursor_sleb(c)));
        return;
    case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
        set_rule(p, reg, CFI_OFFSET, -factored(p, cursor_uleb(c)));
        return;
    case CFA_VAL_OFFSET:
        set_rule(p, reg, CFI_VAL_OFFSET, factored(p, cursor_uleb(c)));
        return;
    case CFA_VAL_OFFSET_SF:
        set_rule(p, reg, CFI_VAL_OFFSET, factored(p, (uint64_t)cursor_sleb(c)));
        return;
    case CFA_RESTORE_EXTENDED:
        restore(p, reg);
        return;
    case CFA_UNDEFINED:
        set_rule(p, reg, CFI_UNDEFINED, 0);
        return;
    case CFA_SAME_VALUE:
        set_rule(p, reg, CFI_SAME, 0);
        return;
    case CFA_REGISTER:
        set_rule(p, reg, CFI_REGISTER, (int64_t)(cursor_uleb(c) & INT32_MAX));
        return;
    case CFA_EXPRESSION:
        set_rule(p, reg, CFI_EXPRESSION, take_expression(p));
        return;
    case CFA_VAL_EXPRESSION:
        set_rule(p, reg, CFI_VAL_EXPRESSION, take_expression(p));
        return;
    case CFA_DEF_CFA:
        define_cfa(p, reg, (int64_t)cursor_uleb(c));
        return;
    case CFA_DEF_CFA_SF:
        define_cfa(p, reg, factored(p, (uint64_t)cursor_sleb(c)));
        return;
    case CFA_DEF_CFA_REGISTER:
        change_cfa(p, reg, p->row.cfa_value);
        return;
    default:
        fail(p, ERR_UNSUPPORTED);
    }
}

static void execute_other(struct program *p, uint8_t op)
{
    struct cursor *c = &p->code;
    switch (op) {
    case CFA_NOP:
        return;
    case CFA_REMEMBER_STATE:
        remember_state(p);
        return;
    case CFA_RESTORE_STATE:
        restore_state(p);
        return;
    case CFA_DEF_CFA_OFFSET:
        change_cfa(p, p->row.cfa_register, (int64_t)cursor_uleb(c));
        return;
    case CFA_DEF_CFA_OFFSET_SF:
        change_cfa(p, p->row.cfa_register, factored(p, (uint64_t)cursor_sleb(c)));
        return;
    case CFA_DEF_CFA_EXPRESSION:
        p->row.cfa_is_expression = true;
        p->row.cfa_value = take_expression(p);
        return;
    case CFA_AARCH64_NEGATE_RA_STATE:
        p->row.return_signed = !p->row.return_signed;
        return;
    case CFA_GNU_ARGS_SIZE:
        (void)cursor_uleb(c);
        return;
    default:
        execute_register(p, op);
    }
}

// Read the new location if `op` moves it. Returns false for other instructions.
static bool read_location(struct program *p, uint8_t op, uint64_t *location)
{
    struct cursor *c = &p->code;
    uint64_t delta = 0;
    if ((op & CFA_HIGH_BITS) == CFA_ADVANCE_LOC) {
        delta = op & CFA_OPERAND;
    } else if (op == CFA_ADVANCE_LOC1) {
        delta = cursor_u8(c);
    } else if (op == CFA_ADVANCE_LOC2) {
        delta = cursor_u16(c);
    } else if (op == CFA_ADVANCE_LOC4) {
        delta = cursor_u32(c);
    } else if (op == CFA_SET_LOC) {
        *location = eh_read_pointer(c, p->function->image, p->function->pointer_encoding, 0);
        return true;
    } else {
        return false;
    }
    *location = p->pc + delta * p->function->code_align;
    return true;
}

// Run the short forms that compilers write, nearly all of a program: one byte, or two whose
// second is a whole operand. Ends before the first instruction of another form, or that moves
// beyond `pc`.
static void run_short_forms(struct program *p, uint64_t pc)
{
    const uint8_t *const code = p->code.at;
    const size_t len = cursor_left(&p->code);
    const uint64_t align = p->function->code_align;
    uint64_t here = p->pc;
    size_t at = 0;
    while (at + 1 < len) {
        const uint8_t op = code[at];
        const uint8_t operand = code[at + 1];
        if (op == CFA_DEF_CFA_OFFSET) {
            if (operand >= 0x80 || p->row.cfa_is_expression) {
                break;
            }
            p->row.cfa_value = operand;
            at += 2;
        } else if ((op & CFA_HIGH_BITS) == CFA_ADVANCE_LOC) {
            const uint64_t location = here + (op & CFA_OPERAND) * align;
            if (location > pc) {
                break;
            }
            here = location;
            at += 1;
        } else if (op == CFA_ADVANCE_LOC1) {
            const uint64_t location = here + operand * align;
            if (location > pc) {
                break;
            }
            here = location;
            at += 2;
        } else if ((op & CFA_HIGH_BITS) == CFA_OFFSET && operand < 0x80) {
            set_rule(p, op & CFA_OPERAND, CFI_OFFSET, factored(p, operand));
            at += 2;
        } else {
            break;
        }
    }
    p->code.at += at;
    p->pc = here;
}

static void run(struct program *p, struct bytes code, uint64_t pc)
{
    p->code = cursor_over(code);
    for (;;) {
        run_short_forms(p, pc);
        if (cursor_left(&p->code) == 0 || p->err != ERR_OK) {
            break;
        }
        uint8_t op = cursor_u8(&p->code);
        uint64_t location = 0;
        if (read_location(p, op, &location)) {
            if (location > pc || p->code.failed) {
                break;
            }
            p->pc = location;
        } else if ((op & CFA_HIGH_BITS) == CFA_OFFSET) {
            set_rule(p, op & CFA_OPERAND, CFI_OFFSET, factored(p, cursor_uleb(&p->code)));
        } else if ((op & CFA_HIGH_BITS) == CFA_RESTORE) {
            restore(p, op & CFA_OPERAND);
        } else {
            execute_other(p, op);
        }
        if (p->code.failed) {
            break;
        }
    }
    if (p->code.failed) {
        fail(p, ERR_CORRUPT);
    }
}

enum err cfi_row_at(const struct eh_function *function, uint64_t pc, struct cfi_row *out)
{
    if (function->return_register >= ARCH_REG_COUNT) {
        return ERR_UNSUPPORTED;
    }
    struct program p;
    p.function = function;
    p.pc = function->start;
    p.err = ERR_OK;
    p.remembered_count = 0;
    p.row = (struct cfi_row){.cfa_register = ARCH_REG_COUNT,
                             .return_register = (uint8_t)function->return_register};
    p.initial = p.row;
    run(&p, function->cie_program, pc);
    p.initial = p.row;
    run(&p, function->fde_program, pc);
    if (p.err == ERR_OK) {
        *out = p.row;
    }
    return p.err;
}

struct bytes cfi_expression(const struct eh_image *image, int64_t place)
{
    struct cursor c = cursor_over(image->bytes);
    (void)cursor_take(&c, (size_t)place);
    uint64_t len = cursor_uleb(&c);
    const uint8_t *data = cursor_take(&c, (size_t)len);
    return data != NULL ? (struct bytes){data, (size_t)len} : (struct bytes){c.start, 0};
}

// The inputs of one step.
struct step {
    const struct eh_image *image;
    struct expression_world world;
    uint64_t cfa;
};

static enum err
evaluate(const struct step *step, int64_t place, const struct term *initial, uint64_t *result)
{
    struct term term;
    TRY(expression_evaluate(cfi_expression(step->image, place), &step->world, initial, &term));
    *result = term.offset;
    return ERR_OK;
}

static enum err find_cfa(struct step *step, const struct cfi_row *row)
{
    const struct cpu *cpu = step->world.cpu;
    if (row->cfa_is_expression) {
        return evaluate(step, row->cfa_value, NULL, &step->cfa);
    }
    if (!cpu_knows(cpu, row->cfa_register)) {
        return ERR_UNSUPPORTED;
    }
    step->cfa = cpu->value[row->cfa_register] + (uint64_t)row->cfa_value;
    return ERR_OK;
}

// Compute the caller's value of `reg` into `caller`, or leave it unknown there.
static enum err
recover(const struct step *step, const struct cfi_row *row, unsigned reg, struct cpu *caller)
{
    const struct cpu *cpu = step->world.cpu;
    struct memory_reader *memory = step->world.memory;
    const struct term cfa = {.offset = step->cfa};
    int64_t value = row->value[reg];
    uint64_t result = step->cfa + (uint64_t)value;
    uint64_t from = reg;
    switch ((enum cfi_kind)row->kind[reg]) {
    case CFI_UNDEFINED:
        return ERR_OK;
    case CFI_UNSPECIFIED:
        if ((ARCH_CALLEE_SAVED >> reg & 1) == 0) {
            return ERR_OK;
        }
        break;
    case CFI_SAME:
        break;
    case CFI_REGISTER:
        from = (uint64_t)value;
        break;
    case CFI_EXPRESSION:
    case CFI_VAL_EXPRESSION:
        TRY(evaluate(step, value, &cfa, &result));
        break;
    case CFI_OFFSET:
    case CFI_VAL_OFFSET:
        break;
    }
    if (row->kind[reg] <= CFI_SAME || row->kind[reg] == CFI_REGISTER) {
        if (cpu_knows(cpu, from)) {
            cpu_set(caller, reg, cpu->value[from]);
        }
        return ERR_OK;
    }
    bool in_memory = row->kind[reg] == CFI_OFFSET || row->kind[reg] == CFI_EXPRESSION;
    if (in_memory && !memory->read(memory, result, &result)) {
        return ERR_IO;
    }
    cpu_set(caller, reg, result);
    return ERR_OK;
}

enum err cfi_step(const struct eh_function *function,
                  const struct cfi_row *row,
                  struct memory_reader *memory,
                  struct cpu *cpu,
                  bool *last)
{
    *last = row->kind[row->return_register] == CFI_UNDEFINED;
    if (*last) {
        return ERR_OK;
    }
    struct step step = {.image = function->image,
                        .world = {.pc = cpu->pc - 1, .cpu = cpu, .memory = memory}};
    TRY(find_cfa(&step, row));
    struct cpu caller;
    caller.known = 0;
    cpu_set(&caller, ARCH_REG_SP, step.cfa);
    for (unsigned reg = 0; reg < ARCH_REG_COUNT; reg++) {
        if (reg != ARCH_REG_SP || row->kind[reg] > CFI_UNDEFINED) {
            TRY(recover(&step, row, reg, &caller));
        }
    }
    if (!cpu_knows(&caller, row->return_register)) {
        return ERR_UNSUPPORTED;
    }
    caller.pc = arch_strip(caller.value[row->return_register]) + (function->signal_frame ? 1 : 0);
    *cpu = caller;
    return ERR_OK;
}
