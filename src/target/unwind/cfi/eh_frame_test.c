// SPDX-License-Identifier: MIT
// Tests tables made by hand, which current linkers do not write, or should not.
#include "target/unwind/cfi/eh_frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "target/unwind/cfi/cfi.h"

#define IMAGE_ADDR 0x400000u
#define TEXT_ADDR  0x10000u // of the first function; each is 0x100 long, with a gap of 0x100

// A table under construction.
struct maker {
    uint8_t bytes[2048];
    size_t len;
    size_t cie;
    size_t fdes[8];
    unsigned fde_count;
};

static void put(struct maker *m, uint64_t value, size_t len_bytes)
{
    for (size_t i = 0; i < len_bytes; i++) {
        m->bytes[m->len++] = (uint8_t)(value >> 8 * i);
    }
}

static void end_entry(struct maker *m, size_t start)
{
    while ((m->len - start) % 8 != 4) {
        put(m, 0, 1);
    }
    put_u32(m->bytes + start, (uint32_t)(m->len - start - 4));
}

// Write a CIE. `encoding` 0 writes one without augmentation.
static void put_cie(struct maker *m, uint8_t version, const char *letters, uint8_t encoding)
{
    m->cie = m->len;
    put(m, 0, 4);
    put(m, 0, 4);
    put(m, version, 1);
    for (const char *c = letters; *c != 0; c++) {
        put(m, (uint8_t)*c, 1);
    }
    put(m, 0, 1);
    if (version == 4) {
        put(m, 8, 1);
        put(m, 0, 1);
    }
    put(m, 1, 1);    // code alignment
    put(m, 0x78, 1); // data alignment: -8
    put(m, ARCH_REG_RETURN, 1);
    if (letters[0] == 'z') {
        put(m, letters[1] == 'R' ? 1 : 0, 1);
        if (letters[1] == 'R') {
            put(m, encoding, 1);
        }
    }
    put(m, 0x0c, 1); // DW_CFA_def_cfa sp + 8
    put(m, ARCH_REG_SP, 1);
    put(m, 8, 1);
    end_entry(m, m->cie);
}

static uint64_t function_start(unsigned index)
{
    return TEXT_ADDR + (uint64_t)index * 0x200;
}

// Write a pointer in `encoding`: only the formats of a fixed size.
static void put_pointer(struct maker *m, uint8_t encoding, uint64_t value)
{
    static const size_t sizes[16] = {
        [0] = 8, [2] = 2, [3] = 4, [4] = 8, [10] = 2, [11] = 4, [12] = 8};
    uint64_t base = (encoding & 0x70) == 0x10 ? IMAGE_ADDR + m->len : 0;
    put(m, value - base, sizes[encoding & 0xf]);
}

static void put_fde(struct maker *m, uint8_t encoding, bool augmented)
{
    size_t start = m->len;
    put(m, 0, 4);
    put(m, m->len - m->cie, 4);
    put_pointer(m, encoding, function_start(m->fde_count));
    put_pointer(m, encoding & 0xf, 0x100);
    if (augmented) {
        put(m, 0, 1);
    }
    put(m, 0x41, 1); // DW_CFA_advance_loc 1
    put(m, 0x0e, 1); // DW_CFA_def_cfa_offset
    put(m, 16 + m->fde_count, 1);
    end_entry(m, start);
    m->fdes[m->fde_count++] = start;
}

// Write the header. It comes last, so that the entries' addresses are known.
static struct eh_table finish(struct maker *m, struct eh_image *image, bool indexed)
{
    put(m, 0, 4); // terminator
    size_t header = m->len;
    put(m, 1, 1);
    put(m, 0x1b, 1); // pcrel sdata4
    put(m, indexed ? 0x03 : 0xff, 1);
    put(m, indexed ? 0x3b : 0xff, 1);
    put(m, 0 - (uint64_t)m->len, 4); // .eh_frame begins with the image
    if (indexed) {
        put(m, m->fde_count, 4);
        for (unsigned i = 0; i < m->fde_count; i++) {
            put(m, function_start(i) - (IMAGE_ADDR + header), 4);
            put(m, m->fdes[i] - header, 4);
        }
    }
    *image = (struct eh_image){.bytes = {m->bytes, m->len}, .addr = IMAGE_ADDR};
    return (struct eh_table){.image = *image, .hdr_addr = IMAGE_ADDR + header};
}

static void expect_three_functions(const struct eh_table *table)
{
    for (unsigned i = 0; i < 3; i++) {
        const uint64_t start = function_start(i);
        const uint64_t inside[] = {start, start + 1, start + 0xff};
        for (size_t k = 0; k < ARRAY_LEN(inside); k++) {
            struct eh_function function;
            struct cfi_row row;
            assert_int_equal(eh_find(table, inside[k], &function), ERR_OK);
            assert_true(function.start == start);
            assert_true(function.end == start + 0x100);
            assert_int_equal(cfi_row_at(&function, inside[k], &row), ERR_OK);
            assert_true(row.cfa_value == (k == 0 ? 8 : 16 + (int64_t)i));
        }
        struct eh_function function;
        assert_int_equal(eh_find(table, start - 1, &function), ERR_NOT_FOUND);
        assert_int_equal(eh_find(table, start + 0x100, &function), ERR_NOT_FOUND);
        assert_true(eh_begins_function(table, start));
        assert_false(eh_begins_function(table, start + 1));
    }
}

static void every_pointer_encoding_with_and_without_an_index(void **state)
{
    (void)state;
    static const uint8_t encodings[] = {0x00, 0x03, 0x04, 0x0b, 0x0c, 0x1b, 0x1c, 0x10};
    for (size_t i = 0; i < ARRAY_LEN(encodings) * 2; i++) {
        struct maker m = {0};
        struct eh_image image;
        put_cie(&m, 1, "zR", encodings[i / 2]);
        for (unsigned k = 0; k < 3; k++) {
            put_fde(&m, encodings[i / 2], true);
        }
        struct eh_table table = finish(&m, &image, i % 2 == 0);
        expect_three_functions(&table);
    }
}

static void every_version_of_cie(void **state)
{
    (void)state;
    static const struct {
        uint8_t version;
        const char *letters;
        enum err want;
    } cases[] = {{1, "", ERR_OK},
                 {3, "", ERR_OK},
                 {4, "", ERR_OK},
                 {1, "z", ERR_OK},
                 {2, "", ERR_UNSUPPORTED},
                 {5, "", ERR_UNSUPPORTED},
                 {1, "eh", ERR_UNSUPPORTED},
                 {1, "zQ", ERR_UNSUPPORTED}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct maker m = {0};
        struct eh_image image;
        put_cie(&m, cases[i].version, cases[i].letters, 0);
        for (unsigned k = 0; k < 3; k++) {
            put_fde(&m, 0, cases[i].letters[0] == 'z');
        }
        struct eh_table table = finish(&m, &image, true);
        struct eh_function function;
        assert_int_equal(eh_find(&table, function_start(1), &function), cases[i].want);
        if (cases[i].want == ERR_OK) {
            expect_three_functions(&table);
        }
    }
}

static void entries_are_gone_through_in_order(void **state)
{
    (void)state;
    struct maker m = {0};
    struct eh_image image;
    put_cie(&m, 1, "zR", 0x1b);
    for (unsigned k = 0; k < 5; k++) {
        put_fde(&m, 0x1b, true);
    }
    struct eh_table table = finish(&m, &image, true);
    uint64_t addr = eh_first(&table);
    assert_true(addr == IMAGE_ADDR);
    unsigned functions = 0;
    for (uint64_t next = addr; eh_next(&table, &next); addr = next) {
        struct eh_function function;
        enum err err = eh_read_fde(&table, addr, &function);
        assert_int_equal(err, addr == IMAGE_ADDR ? ERR_NOT_FOUND : ERR_OK);
        functions += err == ERR_OK;
    }
    assert_int_equal(functions, 5);
}

static void damage_is_refused(void **state)
{
    (void)state;
    struct maker good = {0};
    struct eh_image image;
    put_cie(&good, 1, "zR", 0x1b);
    put_fde(&good, 0x1b, true);
    struct eh_table table = finish(&good, &image, true);
    const size_t header = (size_t)(table.hdr_addr - IMAGE_ADDR);
    const struct {
        size_t offset;
        uint32_t value;
    } cases[] = {
        {header, 2},                // version of the header
        {header + 8, 0x10000000},   // more rows than there are bytes
        {header + 16, 0x7fffffff},  // the row's FDE is outside
        {good.fdes[0], 0x7fffffff}, // the FDE is longer than the image
        {good.fdes[0] + 4, 4},      // its CIE is not a CIE
        {good.fdes[0] + 4, 0xfffffff0},
        {good.fdes[0], 6}, // the FDE is too short for its fields
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct maker m = good;
        put_u32(m.bytes + cases[i].offset, cases[i].value);
        struct eh_table bad = table;
        bad.image.bytes.data = m.bytes;
        struct eh_function function;
        enum err err = eh_find(&bad, function_start(0), &function);
        if (err != ERR_CORRUPT && err != ERR_NOT_FOUND) {
            fail_msg("case %zu: %d", i, (int)err);
        }
    }
    // Cut anywhere, the table is never read beyond its end (the sanitizers check this).
    for (size_t len = 0; len < good.len; len++) {
        struct eh_table cut = table;
        cut.image.bytes.len = len;
        struct eh_function function;
        assert_int_not_equal(eh_find(&cut, function_start(0), &function), ERR_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pointer_encoding_with_and_without_an_index),
        cmocka_unit_test(every_version_of_cie),
        cmocka_unit_test(entries_are_gone_through_in_order),
        cmocka_unit_test(damage_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
