// SPDX-License-Identifier: MIT
// aggregator_week: a week of a program that allocates and frees all the time, on the test's clock.
// What the aggregator keeps of it has bounds that no day exceeds.
#include "aggregate/test_support/test_heap.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum {
    ROWS = 64,
    STEP_MS = 10000,
    DAY_MS = 24 * 3600 * 1000,
    DAYS = 7,
    SLOTS = 16384, // of blocks; the block in one is replaced when its turn comes
    SIZE_BYTES = 100,
    EVENTS_A_STEP = 4,
    CELLS_MAX = (48 << 10) + 4 * ROWS, // of few rows: row_table.h
};

struct week {
    struct aggregator aggregator;
    struct test_heap heap;
    struct aggregator_thread thread;
    uint32_t rows[ROWS];
    bool is_used[SLOTS];
    uint64_t events;
    uint64_t live;
};

// A block lives until its slot comes up again: from one step to some days, by the slot's number.
static size_t slot_of(uint64_t event)
{
    const uint64_t level = (uint64_t)__builtin_ctzll(event + 1); // 0: each other event
    const uint64_t group = (uint64_t)1 << (level < 13 ? level : 13);
    return (size_t)(group + (event >> (level + 1)) % group);
}

static void replace_a_block(struct week *week)
{
    const size_t slot = slot_of(week->events++);
    const uint64_t address = 0x10000 + slot * 128;
    assert_in_range(slot, 0, SLOTS - 1);
    if (week->is_used[slot]) {
        assert_int_equal(test_heap_free(&week->heap, &week->thread, address, false), ERR_OK);
        week->live--;
    }
    week->is_used[slot] = true;
    assert_int_equal(test_heap_allocate(&week->heap, &week->thread, address,
                                        week->rows[week->events % ROWS], SIZE_BYTES),
                     ERR_OK);
    week->live++;
}

static void begin(struct week *week)
{
    const struct rec_process what = {.pid = 100, .parent_pid = 1};
    struct aggregator_process *process = NULL;
    week->heap.aggregator = &week->aggregator;
    assert_int_equal(aggregator_init(&week->aggregator), ERR_OK);
    assert_int_equal(aggregator_process_begin(&week->aggregator, &what, &process), ERR_OK);
    aggregator_thread_begin(&week->thread, process, 0, 100, 0);
    for (uint32_t i = 0; i < ROWS; i++) {
        assert_int_equal(aggregator_row(&week->aggregator, &week->thread, i + 1, &week->rows[i]),
                         ERR_OK);
    }
}

static void run_for_a_day(struct week *week, uint64_t day)
{
    for (uint64_t ms = day * DAY_MS; ms < (day + 1) * DAY_MS; ms += STEP_MS) {
        assert_int_equal(aggregator_tick(&week->aggregator, ms), ERR_OK);
        for (int i = 0; i < EVENTS_A_STEP; i++) {
            replace_a_block(week);
        }
    }
    assert_int_equal(aggregator_extend(&week->aggregator, (day + 1) * DAY_MS), ERR_OK);
}

static size_t used_bytes(void)
{
    const struct mallinfo2 now = mallinfo2();
    return now.uordblks + now.hblkhd;
}

static void a_week_stays_within_its_bounds(void **state)
{
    (void)state;
    static struct week week;
    const size_t before = used_bytes();
    begin(&week);
    size_t first_day = 0;
    for (uint64_t day = 0; day < DAYS; day++) {
        run_for_a_day(&week, day);
        const struct heap_totals *totals = &week.aggregator.totals;
        const size_t cells = cell_table_count(&totals->rows.cells);
        const size_t cohorts = totals->rows.cohorts.cohorts.len;
        const size_t used = used_bytes() - before;
        print_message("day %d: %zu slices, %zu cells, %zu cohorts, %zu KiB\n", (int)day,
                      (size_t)totals->series.current + 1, cells, cohorts, used >> 10);
        assert_true(totals->series.current < SERIES_SLICES_MAX);
        assert_true(totals->series.current >= SERIES_SLICES_MAX / 2 - 1);
        assert_in_range(cells, ROWS, CELLS_MAX);
        assert_in_range(cohorts, 1, AGGREGATOR_COHORTS_MAX);
        first_day = day == 0 ? used : first_day;
        assert_true(used <= 2 * first_day); // vectors double at different times
        assert_int_equal(totals->sums.live_bytes, week.live * SIZE_BYTES);
        assert_int_equal(totals->sums.allocations, week.events);
    }
    test_heap_release(&week.heap);
    aggregator_release(&week.aggregator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_week_stays_within_its_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
