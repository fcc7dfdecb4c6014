// SPDX-License-Identifier: MIT
// Tests programs of call frame instructions that compilers rarely write. rule_oracle_test.c
// compares their usual programs with libdw over whole libraries.
#include "target/unwind/cfi/cfi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "target/unwind/cfi/rule.h"
#include "target/unwind/cfi/rule_compile.h"

#define CIE_MAX 16u

// A function whose programs are in one image: the CIE's first.
struct subject {
    uint8_t bytes[CIE_MAX + 256];
    struct eh_image image;
    struct eh_function function;
};

static void make(struct subject *s, const void *fde, size_t fde_len)
{
    // def_cfa sp + 8; offset of the return address: CFA - 8
    static const uint8_t cie[] = {0x0c, ARCH_REG_SP, 8, 0x05, ARCH_REG_RETURN, 1};
    memcpy(s->bytes, cie, sizeof(cie));
    memcpy(s->bytes + CIE_MAX, fde, fde_len);
    s->image = (struct eh_image){.bytes = {s->bytes, CIE_MAX + fde_len}, .addr = 0x400000};
    s->function = (struct eh_function){.image = &s->image,
                                       .start = 0x1000,
                                       .end = 0x2000,
                                       .code_align = 1,
                                       .data_align = -8,
                                       .return_register = ARCH_REG_RETURN,
                                       .cie_program = {s->bytes, sizeof(cie)},
                                       .fde_program = {s->bytes + CIE_MAX, fde_len}};
}

static void rows_hold_from_their_location_on(void **state)
{
    (void)state;
    static const uint8_t program[] = {
        0x41, 0x0e, 16,                     // advance 1; CFA offset 16
        0x02, 0x10, 0x0a, 0x0e, 32,         // advance1 16; remember; 32
        0x03, 0x00, 0x01, 0x0a, 0x0e, 48,   // advance2 256; remember; 48
        0x04, 0x00, 0x02, 0,    0,    0x0b, // advance4 512; restore
        0x41, 0x0b,                         // advance 1; restore
        0x41, 0x13, 0x78,                   // advance 1; def_cfa_offset_sf -8 * -8
    };
    static const struct {
        uint64_t at;
        int64_t want;
    } cases[] = {{0, 8},    {1, 16},   {16, 16},  {17, 32},  {272, 32}, {273, 48},
                 {784, 48}, {785, 32}, {786, 16}, {787, 64}, {4095, 64}};
    struct subject s;
    make(&s, program, sizeof(program));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct cfi_row row;
        assert_int_equal(cfi_row_at(&s.function, 0x1000 + cases[i].at, &row), ERR_OK);
        assert_true(row.cfa_value == cases[i].want);
    }
}

static void every_way_to_say_where_a_register_is(void **state)
{
    (void)state;
    static const struct {
        uint8_t program[8];
        size_t len;
        enum cfi_kind kind; // of register 3
        int32_t value;
    } cases[] = {
        {{0x83, 2}, 2, CFI_OFFSET, -16},
        {{0x05, 3, 3}, 3, CFI_OFFSET, -24},
        {{0x11, 3, 0x7e}, 3, CFI_OFFSET, 16},
        {{0x2f, 3, 2}, 3, CFI_OFFSET, 16},
        {{0x14, 3, 2}, 3, CFI_VAL_OFFSET, -16},
        {{0x15, 3, 0x7f}, 3, CFI_VAL_OFFSET, 8},
        {{0x07, 3}, 2, CFI_UNDEFINED, 0},
        {{0x08, 3}, 2, CFI_SAME, 0},
        {{0x09, 3, 12}, 3, CFI_REGISTER, 12},
        {{0x10, 3, 1, 0x30}, 4, CFI_EXPRESSION, CIE_MAX + 2},
        {{0x16, 3, 1, 0x30}, 4, CFI_VAL_EXPRESSION, CIE_MAX + 2},
        {{0x83, 2, 0xc3}, 3, CFI_UNSPECIFIED, 0},
        {{0x83, 2, 0x06, 3}, 4, CFI_UNSPECIFIED, 0},
        {{0x83, 2, 0x2e, 16}, 4, CFI_OFFSET, -16},    // GNU_args_size is skipped
        {{0x83, 2, 0x05, 99, 3}, 5, CFI_OFFSET, -16}, // so is a register that we do not follow
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct subject s;
        struct cfi_row row;
        make(&s, cases[i].program, cases[i].len);
        assert_int_equal(cfi_row_at(&s.function, 0x1000, &row), ERR_OK);
        if (row.kind[3] != cases[i].kind || row.value[3] != cases[i].value) {
            fail_msg("case %zu: kind %d value %d", i, row.kind[3], row.value[3]);
        }
    }
}

static void a_signed_return_address_is_a_matter_of_the_row(void **state)
{
    (void)state;
    static const uint8_t program[] = {0x2d, 0x41, 0x2d};
    struct subject s;
    struct cfi_row row;
    make(&s, program, sizeof(program));
    assert_int_equal(cfi_row_at(&s.function, 0x1000, &row), ERR_OK);
    assert_true(row.return_signed);
    assert_int_equal(cfi_row_at(&s.function, 0x1001, &row), ERR_OK);
    assert_false(row.return_signed);
}

static void programs_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint8_t program[24];
        size_t len;
        enum err want;
    } cases[] = {
        {{0x0b}, 1, ERR_CORRUPT},                             // restores without a remembered row
        {{0x0a, 0x0a, 0x0a, 0x0a, 0x0a}, 5, ERR_LIMIT},       // remembers too much
        {{0x0f, 1, 0x30, 0x0e, 8}, 5, ERR_CORRUPT},           // an offset from an expression
        {{0x0e}, 1, ERR_CORRUPT},                             // cut
        {{0x0f, 0x7f}, 2, ERR_CORRUPT},                       // an expression beyond the end
        {{0x3f, 0}, 2, ERR_UNSUPPORTED},                      // does not exist
        {{0x83, 0xff, 0xff, 0xff, 0xff, 0x7f}, 6, ERR_LIMIT}, // an offset beyond 32 bits
        {{0x02}, 1, ERR_CORRUPT},                             // an advance that is cut
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct subject s;
        struct cfi_row row;
        make(&s, cases[i].program, cases[i].len);
        enum err err = cfi_row_at(&s.function, 0x1000, &row);
        if (err != cases[i].want) {
            fail_msg("case %zu: %d, wanted %d", i, (int)err, (int)cases[i].want);
        }
    }
}

static void rules_say_what_rows_say(void **state)
{
    (void)state;
    static const uint64_t complex = (uint64_t)RULE_COMPLEX << 36 | RULE_STOP;
    const struct {
        uint8_t program[24];
        size_t len;
        uint64_t want;
    } cases[] = {
        {{0}, 1, rule_of(0, 8, 0, -8)},
        {{0x0e, 16, 0x80 | ARCH_REG_FP, 2}, 4, rule_of(RULE_FP_SAVED, 16, -16, -8)},
        {{0x0c, ARCH_REG_FP, 16, 0x80 | ARCH_REG_FP, 2},
         5,
         rule_of(RULE_FP_SAVED | RULE_CFA_FP, 16, -16, -8)},
        // gcc's realigned frame: CFA = *(fp - 8), fp saved at fp + 0
        {{0x0f, 3, 0x70 + ARCH_REG_FP, 0x78, 0x06, 0x10, ARCH_REG_FP, 2, 0x70 + ARCH_REG_FP, 0},
         10,
         rule_of(RULE_CFA_FP | RULE_CFA_DEREF | RULE_FP_SAVED | RULE_FP_FROM_BASE, -8, 0, -8)},
        // the PLT: sp + 8, and 8 more in the second half of an entry; the pc is known
        {{0x0f, 12, 0x70 + ARCH_REG_SP, 8, 0x92, ARCH_REG_PC, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24,
          0x22},
         14,
         rule_of(0, 8, 0, -8)},
        {{0x07, ARCH_REG_RETURN}, 2, rule_stopping(RULE_LAST)},
        {{0x0c, 3, 8}, 3, complex},                        // CFA by rbx
        {{0x09, ARCH_REG_FP, 3}, 3, complex},              // fp in rbx
        {{0x08, ARCH_REG_RETURN}, 2, complex},             // return address in no memory
        {{0x0c, ARCH_REG_SP, 4}, 3, complex},              // CFA not a multiple of a word
        {{0x09, ARCH_REG_SP, 3}, 3, complex},              // sp is not the CFA
        {{0x80 | ARCH_REG_FP, 0x80, 0x80, 1}, 4, complex}, // the slot is out of a rule's reach
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct subject s;
        struct cfi_row row;
        make(&s, cases[i].program, cases[i].len);
        assert_int_equal(cfi_row_at(&s.function, 0x1000, &row), ERR_OK);
        uint64_t rule = rule_from_row(&s.function, &row, 0x1000);
        if (rule != cases[i].want) {
            fail_msg("case %zu: rule %#llx, wanted %#llx", i, (unsigned long long)rule,
                     (unsigned long long)cases[i].want);
        }
    }
}

static void fields_of_a_rule_hold_their_range(void **state)
{
    (void)state;
    static const struct {
        int64_t cfa;
        int64_t slot;
        bool fits;
    } cases[] = {
        {0, -8, true},
        {((int64_t)1 << 30) - 8, 65528, true},
        {-((int64_t)1 << 30), -65536, true},
        {(int64_t)1 << 30, 0, false},
        {-((int64_t)1 << 30) - 8, 0, false},
        {8, 65536, false},
        {8, -65544, false},
        {4, 0, false},
        {8, 4, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t rule = rule_of(RULE_FP_SAVED, cases[i].cfa, cases[i].slot, -cases[i].slot - 8);
        if (!cases[i].fits) {
            assert_true(rule == rule_stopping(RULE_COMPLEX));
            continue;
        }
        assert_true(rule_cfa_offset(rule) == cases[i].cfa);
        assert_true(rule_fp_offset(rule) == cases[i].slot);
        assert_true(rule_ret_offset(rule) == -cases[i].slot - 8);
        assert_true((rule & 0xff) == RULE_FP_SAVED);
    }
    assert_true(rule_of(0, 0, 0, 0) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_hold_from_their_location_on),
        cmocka_unit_test(every_way_to_say_where_a_register_is),
        cmocka_unit_test(a_signed_return_address_is_a_matter_of_the_row),
        cmocka_unit_test(programs_that_make_no_sense_are_refused),
        cmocka_unit_test(rules_say_what_rows_say),
        cmocka_unit_test(fields_of_a_rule_hold_their_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
