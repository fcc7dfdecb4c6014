// SPDX-License-Identifier: MIT
// Reads tables of lines that CPython 3.11 and 3.10 made, and compares with their own co_lines().
// Reads drawn bytes inside their bounds (AddressSanitizer).
#include "target/preload/python/python_lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/hash.h"

// Of a function with a loop, a comprehension, and calls over several lines.
static const uint8_t table[] = {
    0x80, 0x00, 0xf0, 0x04, 0x02, 0x09, 0x0c, 0xf0, 0x00, 0x02, 0x09, 0x0c, 0xe0, 0x09, 0x0a,
    0xf0, 0x05, 0x02, 0x09, 0x0c, 0xf1, 0x00, 0x02, 0x09, 0x0c, 0xf4, 0x00, 0x02, 0x09, 0x0c,
    0x80, 0x41, 0xf5, 0x06, 0x00, 0x0e, 0x13, 0xd8, 0x0c, 0x0d, 0xf1, 0x03, 0x01, 0x0e, 0x0f,
    0xf4, 0x00, 0x01, 0x0e, 0x0f, 0xf0, 0x00, 0x03, 0x05, 0x0d, 0xf0, 0x00, 0x03, 0x05, 0x0d,
    0x88, 0x01, 0xe5, 0x08, 0x09, 0x88, 0x21, 0xd8, 0x0a, 0x0b, 0xf1, 0x03, 0x01, 0x09, 0x0d,
    0xf4, 0x00, 0x01, 0x09, 0x0d, 0xf0, 0x00, 0x01, 0x09, 0x0d, 0xf0, 0x00, 0x01, 0x09, 0x0d,
    0xf0, 0x04, 0x03, 0x05, 0x0e, 0xd8, 0x0f, 0x10, 0xe0, 0x08, 0x09, 0x8f, 0x03, 0x8a, 0x03,
    0x89, 0x05, 0x8c, 0x05, 0x88, 0x05, 0x88, 0x05, 0xf8, 0x88, 0x01, 0x8f, 0x03, 0x8a, 0x03,
    0x89, 0x05, 0x8c, 0x05, 0x88, 0x05, 0x88, 0x05, 0xf8, 0xf8, 0xf8};
static const uint32_t lines[] = {
    1,  3,  3,  5,  3,  3,  3,  3,  3,  3,  3,  3,  3,  6,  6,  6,  6,  6,  6,  7,  6,  6,  6, 6,
    6,  6,  6,  6,  6,  6,  8,  8,  8,  8,  8,  8,  8,  9,  8,  8,  8,  8,  8,  8,  8,  8,  8, 10,
    11, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 1, 13,
    13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 1,  1,  1};

static void a_table_of_pythons_gives_its_lines(void **state)
{
    (void)state;
    for (size_t unit = 0; unit < ARRAY_LEN(lines); unit++) {
        assert_int_equal(python_lines_find(table, sizeof(table), 1, unit), lines[unit]);
        assert_int_equal(python_lines_find(table, sizeof(table), 1001, unit), lines[unit] + 1000);
    }
}

// Of a function with a call over several lines, a try statement and a gap of 127 lines.
static const uint8_t pairs[] = {
    0x04, 0x01, 0x02, 0x01, 0x02, 0x01, 0x06, 0x01, 0x0a, 0xfe, 0x08, 0x03, 0x02, 0x02,
    0x06, 0x01, 0x02, 0xff, 0x04, 0xfe, 0x02, 0x04, 0x06, 0xfc, 0x04, 0x05, 0x02, 0x01,
    0x02, 0x01, 0x02, 0x01, 0x08, 0xfe, 0x0e, 0x03, 0x10, 0x01, 0x08, 0x80, 0x02, 0xff,
    0x02, 0x80, 0x14, 0x06, 0x0e, 0x7f, 0x02, 0x01, 0x22, 0xff, 0x02, 0x80, 0x04, 0x02};
static const uint32_t lines_of_pairs[] = {
    3,   3,   4,   5,   6,   6,   6,   4,   4,   4,   4,   4,   7,   7,   7,   7,   9,   10,  10,
    10,  9,   7,   7,   11,  7,   7,   7,   12,  12,  13,  14,  15,  13,  13,  13,  13,  16,  16,
    16,  16,  16,  16,  16,  17,  17,  17,  17,  17,  17,  17,  17,  2,   2,   2,   2,   16,  2,
    22,  22,  22,  22,  22,  22,  22,  22,  22,  22,  149, 149, 149, 149, 149, 149, 149, 150, 149,
    149, 149, 149, 149, 149, 149, 149, 149, 149, 149, 149, 149, 149, 149, 149, 149, 2,   151, 151};

static void so_does_one_of_pairs(void **state)
{
    (void)state;
    for (size_t unit = 0; unit < ARRAY_LEN(lines_of_pairs); unit++) {
        assert_int_equal(python_lines_find_pair(pairs, sizeof(pairs), 2, unit),
                         lines_of_pairs[unit]);
    }
    assert_int_equal(python_lines_find_pair(pairs, sizeof(pairs), 2, ARRAY_LEN(lines_of_pairs)), 2);
    assert_int_equal(python_lines_find_pair(pairs, sizeof(pairs), 2, UINT64_MAX), 2);
    assert_int_equal(python_lines_find_pair(pairs, 1, 2, 0), 2);
    assert_int_equal(python_lines_find_pair(pairs + 16, 2, 1, 0), 0); // line - 1
}

static void without_an_entry_it_is_the_first_line(void **state)
{
    (void)state;
    assert_int_equal(python_lines_find(table, sizeof(table), 7, ARRAY_LEN(lines)), 7);
    assert_int_equal(python_lines_find(table, sizeof(table), 7, UINT64_MAX / 2), 7);
    assert_int_equal(python_lines_find(table, 0, 7, 0), 7);
    const uint8_t before_the_first[] = {0xe8, 0x03}; // line - 1
    assert_int_equal(python_lines_find(before_the_first, 2, 0, 0), 0);
    assert_int_equal(python_lines_find(before_the_first, 2, 9, 0), 8);
}

static void any_bytes_are_read_inside_their_bounds(void **state)
{
    (void)state;
    uint64_t drawn = 1;
    for (size_t size = 0; size <= 64; size++) {
        for (int i = 0; i < 200; i++) {
            uint8_t *bytes = malloc(size + 1);
            for (size_t at = 0; at < size; at++) {
                drawn = hash_mix(drawn + 1);
                bytes[at] = (uint8_t)drawn;
            }
            uint8_t *exact = realloc(bytes, size > 0 ? size : 1);
            (void)python_lines_find(exact, size, (uint32_t)drawn, drawn % 100); // no fault
            (void)python_lines_find_pair(exact, size, (uint32_t)drawn, drawn % 1000);
            free(exact);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_of_pythons_gives_its_lines),
        cmocka_unit_test(so_does_one_of_pairs),
        cmocka_unit_test(without_an_entry_it_is_the_first_line),
        cmocka_unit_test(any_bytes_are_read_inside_their_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
