// SPDX-License-Identifier: MIT
#include "target/unwind/cfi/expression.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"

#define SP (0x70 + ARCH_REG_SP) // DW_OP_breg of the stack pointer
#define FP (0x70 + ARCH_REG_FP)

static bool read_twice(struct memory_reader *self, uint64_t addr, uint64_t *word)
{
    (void)self;
    *word = addr * 2;
    return addr != 0xbad0;
}

static const struct {
    uint8_t code[16];
    size_t len;
    enum err err;
    uint64_t want;
} number_cases[] = {
    {{0x37}, 1, ERR_OK, 7},                                          // lit7
    {{0x08, 0xff}, 2, ERR_OK, 255},                                  // const1u
    {{0x09, 0xff}, 2, ERR_OK, UINT64_MAX},                           // const1s
    {{0x0a, 0xfe, 0xff}, 3, ERR_OK, 65534},                          // const2u
    {{0x0b, 0xfe, 0xff}, 3, ERR_OK, (uint64_t)-2},                   // const2s
    {{0x0c, 1, 0, 0, 0x80}, 5, ERR_OK, 0x80000001},                  // const4u
    {{0x0d, 1, 0, 0, 0x80}, 5, ERR_OK, 0xffffffff80000001},          // const4s
    {{0x0e, 8, 7, 6, 5, 4, 3, 2, 1}, 9, ERR_OK, 0x0102030405060708}, // const8u
    {{0x10, 0x80, 1}, 3, ERR_OK, 128},                               // constu
    {{0x11, 0x7f}, 2, ERR_OK, UINT64_MAX},                           // consts
    {{0x35, 0x12, 0x22}, 3, ERR_OK, 10},                             // 5 dup plus
    {{0x35, 0x36, 0x13}, 3, ERR_OK, 5},                              // 5 6 drop
    {{0x35, 0x36, 0x14, 0x1c}, 4, ERR_OK, 1},                        // 5 6 over minus: 6 - 5
    {{0x35, 0x36, 0x37, 0x15, 2}, 5, ERR_OK, 5},                     // 5 6 7 pick 2
    {{0x35, 0x36, 0x16, 0x1c}, 4, ERR_OK, 1},                        // 5 6 swap minus: 6 - 5
    {{0x31, 0x32, 0x33, 0x17, 0x13}, 5, ERR_OK, 1},                  // 1 2 3 rot drop: 3 1
    {{0x31, 0x32, 0x33, 0x17}, 4, ERR_OK, 2},                        // 1 2 3 rot: 3 1 2
    {{0x35, 0x1f, 0x19}, 3, ERR_OK, 5},                              // 5 neg abs
    {{0x35, 0x20}, 2, ERR_OK, ~5ULL},                                // not
    {{0x3c, 0x3a, 0x1a}, 3, ERR_OK, 8},                              // 12 and 10
    {{0x3c, 0x3a, 0x21}, 3, ERR_OK, 14},                             // or
    {{0x3c, 0x3a, 0x27}, 3, ERR_OK, 6},                              // xor
    {{0x3c, 0x1f, 0x35, 0x1b}, 4, ERR_OK, (uint64_t)-2},             // -12 div 5
    {{0x3c, 0x35, 0x1d}, 3, ERR_OK, 2},                              // 12 mod 5
    {{0x3c, 0x35, 0x1e}, 3, ERR_OK, 60},                             // mul
    {{0x31, 0x08, 64, 0x24}, 4, ERR_OK, 0},                          // 1 shl 64
    {{0x31, 0x34, 0x24}, 3, ERR_OK, 16},                             // 1 shl 4
    {{0x31, 0x1f, 0x08, 60, 0x25}, 5, ERR_OK, 15},                   // -1 shr 60
    {{0x38, 0x1f, 0x32, 0x26}, 4, ERR_OK, (uint64_t)-2},             // -8 shra 2
    {{0x38, 0x23, 3}, 3, ERR_OK, 11},                                // 8 plus_uconst 3
    {{0x31, 0x1f, 0x31, 0x2d}, 4, ERR_OK, 1},                        // -1 lt 1
    {{0x31, 0x1f, 0x31, 0x2a}, 4, ERR_OK, 0},                        // -1 ge 1
    {{0x31, 0x31, 0x29}, 3, ERR_OK, 1},                              // eq
    {{0x31, 0x31, 0x2e}, 3, ERR_OK, 0},                              // ne
    {{0x31, 0x31, 0x2c}, 3, ERR_OK, 1},                              // le
    {{0x31, 0x31, 0x2b}, 3, ERR_OK, 0},                              // gt
    {{0x35, 0x31, 0x28, 1, 0, 0x96, 0x23, 1}, 8, ERR_OK, 6},         // taken over a nop
    {{0x35, 0x30, 0x28, 2, 0, 0x23, 1}, 7, ERR_OK, 6},               // not taken
    {{0x35, 0x2f, 2, 0, 0x23, 1}, 6, ERR_OK, 5},                     // skip
    {{0x03, 1, 0, 0, 0, 0, 0, 0, 0}, 9, ERR_OK, 1},                  // addr
    {{SP, 0x10}, 2, ERR_OK, 0x1010},                                 // breg sp + 16
    {{0x92, ARCH_REG_SP, 0x78}, 3, ERR_OK, 0xff8},                   // bregx sp - 8
    {{SP, 0, 0x06}, 3, ERR_OK, 0x2000},                              // deref
    {{SP, 0, 0x94, 1}, 4, ERR_OK, 0x00},                             // deref_size 1
    {{SP, 0, 0x94, 2}, 4, ERR_OK, 0x2000},                           // deref_size 2
    {{SP, 1, 0x94, 1}, 4, ERR_OK, 0x20},                             // the second byte
    // Errors and unsupported operations:
    {{0x22}, 1, ERR_CORRUPT, 0},             // plus on nothing
    {{0}, 0, ERR_CORRUPT, 0},                // no result
    {{0x08}, 1, ERR_CORRUPT, 0},             // cut
    {{0x31, 0x30, 0x1b}, 3, ERR_CORRUPT, 0}, // division by zero
    {{0x31, 0x30, 0x1d}, 3, ERR_CORRUPT, 0},
    {{0x35, 0x15, 3}, 3, ERR_CORRUPT, 0},                 // pick beyond
    {{0x35, 0x94, 9}, 3, ERR_CORRUPT, 0},                 // deref_size 9
    {{0x35, 0x2f, 9, 0}, 4, ERR_CORRUPT, 0},              // skip beyond the end
    {{0x35, 0x2f, 0xfc, 0xff}, 4, ERR_UNSUPPORTED, 0},    // backwards
    {{0x70 + 5, 0}, 2, ERR_UNSUPPORTED, 0},               // an unknown register
    {{0x92, 0xff, 0x7f, 0}, 4, ERR_UNSUPPORTED, 0},       // a register that does not exist
    {{0x01}, 1, ERR_UNSUPPORTED, 0},                      // an operation that does not exist
    {{0x0a, 0xd0, 0xba, 0x06}, 4, ERR_IO, 0},             // memory that cannot be read
    {{0x12, 0x12, 0x12, 0x12}, 4, ERR_CORRUPT, 0},        // dup of nothing
    {{0x31, 0x1f, 0x31, 0x31, 0x24, 0x1b}, 6, ERR_OK, 0}, // -1 / 2
};

static void numbers(void **state)
{
    (void)state;
    struct cpu cpu = {0};
    cpu_set(&cpu, ARCH_REG_SP, 0x1000);
    struct memory_reader memory = {.read = read_twice};
    const struct expression_world world = {.pc = 0x123, .cpu = &cpu, .memory = &memory};
    for (size_t i = 0; i < ARRAY_LEN(number_cases); i++) {
        struct term got = {.offset = 77};
        enum err err = expression_evaluate(
            (struct bytes){number_cases[i].code, number_cases[i].len}, &world, NULL, &got);
        uint64_t want = number_cases[i].err == ERR_OK ? number_cases[i].want : 77;
        if (err != number_cases[i].err || got.offset != want) {
            fail_msg("case %zu: error %d (wanted %d), %#llx (wanted %#llx)", i, (int)err,
                     (int)number_cases[i].err, (unsigned long long)got.offset,
                     (unsigned long long)want);
        }
    }
}

static void symbols(void **state)
{
    (void)state;
    static const struct {
        uint8_t code[16];
        size_t len;
        enum err err;
        struct term want;
    } cases[] = {
        {{SP, 8}, 2, ERR_OK, {.base = TERM_SP, .offset = 8}},
        {{FP, 0x78}, 2, ERR_OK, {.base = TERM_FP, .offset = (uint64_t)-8}},
        {{FP, 0x78, 0x06}, 3, ERR_OK, {.base = TERM_FP, .offset = (uint64_t)-8, .deref = true}},
        {{0x38, SP, 8, 0x22}, 4, ERR_OK, {.base = TERM_SP, .offset = 16}},
        {{SP, 8, 0x38, 0x1c}, 4, ERR_OK, {.base = TERM_SP}},
        {{0x23, 8}, 2, ERR_OK, {.base = TERM_CFA, .offset = 8}}, // on the initial CFA
        {{SP, 8, FP, 0, 0x22}, 5, ERR_UNSUPPORTED, {0}},         // the sum of two symbols
        {{SP, 8, FP, 0, 0x1c}, 5, ERR_UNSUPPORTED, {0}},
        {{SP, 8, 0x38, 0x1a}, 4, ERR_UNSUPPORTED, {0}},    // masked
        {{SP, 8, 0x06, 0x06}, 4, ERR_UNSUPPORTED, {0}},    // twice dereferenced
        {{SP, 8, 0x06, 0x23, 8}, 5, ERR_UNSUPPORTED, {0}}, // added to after that
        {{0x38, 0x06}, 2, ERR_UNSUPPORTED, {0}},           // at an absolute address
        {{0x70 + 3, 8}, 2, ERR_UNSUPPORTED, {0}},          // another register
        {{SP, 8, 0x1f}, 3, ERR_UNSUPPORTED, {0}},
        {{SP, 8, 0x28, 0, 0}, 5, ERR_UNSUPPORTED, {0}}, // a branch on a symbol
        {{SP, 8, 0x94, 4}, 4, ERR_UNSUPPORTED, {0}},
    };
    const struct expression_world world = {.pc = 0x123};
    const struct term cfa = {.base = TERM_CFA};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct term got = {0};
        enum err err =
            expression_evaluate((struct bytes){cases[i].code, cases[i].len}, &world, &cfa, &got);
        if (err != cases[i].err || got.base != cases[i].want.base ||
            got.offset != cases[i].want.offset || got.deref != cases[i].want.deref) {
            fail_msg("case %zu: error %d, base %d, offset %#llx, deref %d", i, (int)err,
                     (int)got.base, (unsigned long long)got.offset, got.deref);
        }
    }
}

static void the_stack_of_terms_is_bounded(void **state)
{
    (void)state;
    uint8_t code[64];
    for (size_t i = 0; i < sizeof(code); i++) {
        code[i] = 0x31;
    }
    const struct expression_world world = {0};
    struct term got;
    assert_int_equal(expression_evaluate((struct bytes){code, sizeof(code)}, &world, NULL, &got),
                     ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(symbols),
        cmocka_unit_test(the_stack_of_terms_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
