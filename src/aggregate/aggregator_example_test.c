// SPDX-License-Identifier: MIT
// The example at the top of aggregator.h, step by step.
#include "aggregate/aggregator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "aggregate/test_support/test_heap.h"
#include "base/compiler.h"

enum {
    ROWS = 3,
    A = 0,
    B = 1,
};

static const struct step {
    uint64_t address;
    uint64_t size_bytes; // 0: a free
    int thread;
    int row;
    uint64_t live_bytes[ROWS];
    uint64_t peak_bytes[ROWS]; // of rows that have changed since the peak
    uint64_t sum_bytes;
    uint64_t highest_bytes;
    uint32_t peak_number;
} steps[] = {
    {0x1000, 100, A, 0, {100, 0, 0}, {0}, 100, 100, 1},
    {0x2000, 40, B, 2, {100, 0, 40}, {0}, 140, 140, 2},
    {0x3000, 60, A, 1, {100, 60, 40}, {0}, 200, 200, 3},
    {0x1000, 0, A, 0, {0, 60, 40}, {100, 0, 0}, 100, 200, 3},
    {0x4000, 30, B, 2, {0, 60, 70}, {100, 0, 40}, 130, 200, 3},
    {0x3000, 0, A, 1, {0, 0, 70}, {100, 60, 40}, 70, 200, 3},
};

static void count(struct test_heap *heap,
                  struct aggregator_thread threads[2],
                  const uint32_t rows[ROWS],
                  const struct step *step)
{
    struct aggregator_thread *thread = threads + step->thread;
    assert_int_equal(step->size_bytes != 0 ? test_heap_allocate(heap, thread, step->address,
                                                                rows[step->row], step->size_bytes)
                                           : test_heap_free(heap, thread, step->address, false),
                     ERR_OK);
}

static void the_example_of_the_header_is_true(void **state)
{
    (void)state;
    CLEANUP(aggregator_release) struct aggregator aggregator = {0};
    CLEANUP(test_heap_release) struct test_heap heap = {.aggregator = &aggregator};
    const struct heap_totals *totals = &aggregator.totals;
    const struct rec_process what = {.pid = 100, .parent_pid = 1};
    struct aggregator_process *process = NULL;
    struct aggregator_thread threads[2] = {0};
    uint32_t rows[ROWS];
    assert_int_equal(aggregator_init(&aggregator), ERR_OK);
    assert_int_equal(aggregator_process_begin(&aggregator, &what, &process), ERR_OK);
    aggregator_thread_begin(&threads[A], process, 0, 100, 0);
    aggregator_thread_begin(&threads[B], process, 1, 101, 0);
    for (uint32_t i = 0; i < ROWS; i++) {
        assert_int_equal(aggregator_row(&aggregator, &threads[i < 2 ? A : B], i + 1, &rows[i]),
                         ERR_OK);
    }
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        count(&heap, threads, rows, &steps[i]);
        print_message("step %zu\n", i);
        for (size_t row = 0; row < ROWS; row++) {
            const struct rec_row *r = totals->rows.rows.items + rows[row];
            const struct row_extra *extra = totals->rows.extras.items + rows[row];
            assert_int_equal(r->allocated_bytes - r->freed_bytes, steps[i].live_bytes[row]);
            if (extra->peak_number == steps[i].peak_number) {
                assert_int_equal(r->peak_bytes, steps[i].peak_bytes[row]);
            }
        }
        assert_int_equal(totals->sums.live_bytes, steps[i].sum_bytes);
        assert_int_equal(totals->peak_bytes, steps[i].highest_bytes);
        assert_int_equal(totals->rows.peak_number, steps[i].peak_number);
    }
    assert_int_equal(aggregator_complete_rows(&aggregator), ERR_OK);
    uint64_t sum_bytes = 0;
    for (size_t row = 0; row < ROWS; row++) {
        const struct rec_row *r = totals->rows.rows.items + rows[row];
        assert_int_equal(r->peak_bytes, steps[ARRAY_LEN(steps) - 1].peak_bytes[row]);
        sum_bytes += r->peak_bytes;
    }
    assert_int_equal(sum_bytes, totals->peak_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_header_is_true),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
