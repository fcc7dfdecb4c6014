// SPDX-License-Identifier: MIT
// rule_compile: see rule_compile.h and rule.h.
#include "target/unwind/cfi/rule_compile.h"

#include <stdbool.h>

#include "target/unwind/cfi/rule.h"

// The place of the caller's value of a register, in the terms of a rule.
struct slot {
    bool saved;
    bool from_base;
    int64_t offset;
};

struct compilation {
    const struct eh_function *function;
    const struct cfi_row *row;
    struct expression_world world;
    struct term cfa; // base SP or FP
};

static bool
evaluate(const struct compilation *c, int64_t place, const struct term *initial, struct term *out)
{
    struct bytes code = cfi_expression(c->function->image, place);
    return expression_evaluate(code, &c->world, initial, out) == ERR_OK;
}

static bool find_cfa(struct compilation *c)
{
    const struct cfi_row *row = c->row;
    if (row->cfa_is_expression) {
        return evaluate(c, row->cfa_value, NULL, &c->cfa) && c->cfa.base != TERM_NUMBER;
    }
    if (row->cfa_register != ARCH_REG_SP && row->cfa_register != ARCH_REG_FP) {
        return false;
    }
    c->cfa = (struct term){.base = row->cfa_register == ARCH_REG_SP ? TERM_SP : TERM_FP,
                           .offset = (uint64_t)row->cfa_value};
    return true;
}

static bool find_slot(const struct compilation *c, unsigned reg, struct slot *out)
{
    const struct term cfa = {.base = TERM_CFA};
    struct term place;
    switch ((enum cfi_kind)c->row->kind[reg]) {
    case CFI_UNSPECIFIED:
    case CFI_SAME:
    case CFI_UNDEFINED:
        *out = (struct slot){0};
        return true;
    case CFI_OFFSET:
        *out = (struct slot){.saved = true, .offset = c->row->value[reg]};
        return true;
    case CFI_EXPRESSION:
        if (!evaluate(c, c->row->value[reg], &cfa, &place) || place.deref ||
            (place.base != TERM_CFA && place.base != c->cfa.base)) {
            return false;
        }
        *out = (struct slot){
            .saved = true, .from_base = place.base != TERM_CFA, .offset = (int64_t)place.offset};
        return true;
    case CFI_REGISTER:
    case CFI_VAL_OFFSET:
    case CFI_VAL_EXPRESSION:
        return false;
    }
    return false;
}

// A rule makes the CFA the caller's sp. A row may define sp otherwise; signal frames do, with the
// same effect: there both are the interrupted sp.
static bool sp_is_cfa(const struct compilation *c)
{
    if (c->row->kind[ARCH_REG_SP] <= CFI_UNDEFINED) {
        return true;
    }
    struct slot slot;
    return find_slot(c, ARCH_REG_SP, &slot) && slot.saved && slot.from_base && c->cfa.deref &&
           slot.offset == (int64_t)c->cfa.offset;
}

uint64_t rule_from_row(const struct eh_function *function, const struct cfi_row *row, uint64_t pc)
{
    if (row->kind[row->return_register] == CFI_UNDEFINED) {
        return rule_stopping(RULE_LAST);
    }
    struct compilation c = {.function = function, .row = row, .world = {.pc = pc}};
    struct slot fp;
    struct slot ret;
    if (!find_cfa(&c) || !find_slot(&c, ARCH_REG_FP, &fp) ||
        !find_slot(&c, row->return_register, &ret) || !ret.saved || !sp_is_cfa(&c)) {
        return rule_stopping(RULE_COMPLEX);
    }
    uint32_t flags =
        (c.cfa.base == TERM_FP ? RULE_CFA_FP : 0) | (c.cfa.deref ? RULE_CFA_DEREF : 0) |
        (fp.saved ? RULE_FP_SAVED : 0) | (fp.from_base ? RULE_FP_FROM_BASE : 0) |
        (ret.from_base ? RULE_RET_FROM_BASE : 0) | (function->signal_frame ? RULE_SIGNAL : 0);
    return rule_of(flags, (int64_t)c.cfa.offset, fp.offset, ret.offset);
}

uint64_t rule_from_table(const struct eh_table *table, uint64_t ret_addr)
{
    uint64_t pc = ret_addr - 1;
    struct eh_function function;
    enum err err = eh_find(table, pc, &function);
    if (err == ERR_NOT_FOUND) {
        return rule_stopping(eh_begins_function(table, ret_addr) ? RULE_ENTRY : RULE_NO_TABLE);
    }
    struct cfi_row row;
    if (err != ERR_OK || cfi_row_at(&function, pc, &row) != ERR_OK) {
        return rule_stopping(RULE_BROKEN);
    }
    return rule_from_row(&function, &row, pc);
}
