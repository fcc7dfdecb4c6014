// SPDX-License-Identifier: MIT
// row_merger: rows that come in two parts, with threads of two processes and some of none.
#include "recording/merge/row_merger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"

enum {
    PROCESSES = 3, // the second has no thread
    FIRST_PART = 4,
};

static struct rec_row row_of(uint32_t thread, uint32_t node, uint64_t value)
{
    return (struct rec_row){thread,    node,      value,     value * 2, value * 3, value * 4,
                            value * 5, value * 6, value * 7, value * 8, value * 9};
}

static void rows_of_a_process_and_a_node_are_one(void **state)
{
    (void)state;
    static const struct rec_thread threads[] = {
        {.process = 2}, {.process = 0}, {.process = 2}, {.process = 9}, {.process = 0}};
    struct rec_row rows[] = {
        row_of(2, 7, 1), row_of(0, 7, 10), row_of(1, 7, 100), row_of(2, 8, 1000), // first part
        row_of(4, 7, 7), row_of(3, 7, 3),  row_of(99, 7, 4),  row_of(0, 8, 5),    row_of(3, 7, 6)};
    const struct rec_row wanted[] = {row_of(0, 7, 11), row_of(1, 7, 107), row_of(0, 8, 1005),
                                     row_of(3, 7, 3),  row_of(99, 7, 4),  row_of(3, 7, 6)};
    CLEANUP(row_merger_release)
    struct row_merger merger = {
        .threads = threads, .thread_count = ARRAY_LEN(threads), .process_count = PROCESSES};
    size_t count;
    assert_int_equal(row_merger_add(&merger, rows, 0, FIRST_PART, &count), ERR_OK);
    assert_int_equal(count, 3);
    const size_t more = ARRAY_LEN(rows) - FIRST_PART;
    memmove(rows + count, rows + FIRST_PART, more * sizeof(rows[0]));
    assert_int_equal(row_merger_add(&merger, rows, count, count + more, &count), ERR_OK);
    assert_int_equal(count, ARRAY_LEN(wanted));
    assert_memory_equal(rows, wanted, sizeof(wanted));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_of_a_process_and_a_node_are_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
