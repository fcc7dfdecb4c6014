// SPDX-License-Identifier: MIT
// The history of rows (cells and cohorts) against a list of all blocks so far, at every resolution:
// as slices merge while the run grows, and as caps make cells and cohorts coarser.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregate/test_support/test_heap.h"
#include "base/test_support/random_numbers.h"
#include "recorder/output/test_snapshot.h"
#include "recording/test_support/recording_check.h"

enum {
    ROWS = 6,
    BLOCKS_MAX = 20000,
    NEVER = -1,
};

struct past_block {
    uint32_t row;
    uint64_t size_bytes;
    int64_t born_ms;
    int64_t freed_ms; // or NEVER
};

struct history {
    struct aggregator aggregator;
    struct test_heap heap;
    struct aggregator_process *process;
    struct aggregator_thread thread;
    uint32_t rows[ROWS];
    struct past_block *blocks;
    size_t count;
};

static void open_history(struct history *h, size_t cells_max, size_t cohorts_max)
{
    *h = (struct history){.blocks = calloc(BLOCKS_MAX, sizeof(*h->blocks))};
    assert_non_null(h->blocks);
    assert_int_equal(aggregator_init(&h->aggregator), ERR_OK);
    h->heap.aggregator = &h->aggregator;
    h->aggregator.totals.rows.cells_max = cells_max;
    h->aggregator.totals.rows.cohorts_max = cohorts_max;
    const struct rec_process record = {.pid = 1, .exit_status = -1};
    assert_int_equal(aggregator_process_begin(&h->aggregator, &record, &h->process), ERR_OK);
    aggregator_thread_begin(&h->thread, h->process, 0, 1, 0);
    for (uint32_t i = 0; i < ROWS; i++) {
        uint32_t frame;
        uint32_t node;
        assert_int_equal(stack_table_frame(&h->aggregator.stacks, REC_NONE, i + 1, 0, &frame),
                         ERR_OK);
        assert_int_equal(stack_table_node(&h->aggregator.stacks, 0, frame, &node), ERR_OK);
        assert_int_equal(aggregator_row(&h->aggregator, &h->thread, node, &h->rows[i]), ERR_OK);
    }
}

static void close_history(struct history *h)
{
    test_heap_release(&h->heap);
    aggregator_release(&h->aggregator);
    free(h->blocks);
}

static void allocate(struct history *h, uint64_t random, int64_t now_ms)
{
    struct past_block *block = h->blocks + h->count;
    *block = (struct past_block){.row = (uint32_t)(random % ROWS),
                                 .size_bytes = random >> 8 & 0xfff,
                                 .born_ms = now_ms,
                                 .freed_ms = NEVER};
    h->count++;
    assert_int_equal(test_heap_allocate(&h->heap, &h->thread, h->count * 16, h->rows[block->row],
                                        block->size_bytes),
                     ERR_OK);
}

static void live(struct history *h, uint64_t step_ms, uint64_t seed)
{
    uint64_t random = seed;
    int64_t now_ms = 0;
    while (h->count < BLOCKS_MAX) {
        const uint64_t r = next_random(&random);
        now_ms += (int64_t)(step_ms > 0 ? r >> 40 & (2 * step_ms - 1) : 0);
        h->thread.tick_ms = (uint64_t)now_ms;
        assert_int_equal(aggregator_tick(&h->aggregator, (uint64_t)now_ms), ERR_OK);
        struct past_block *old = h->blocks + (r >> 20) % (h->count + 1);
        if (r % 5 < 3 || h->count == 0) {
            allocate(h, next_random(&random), now_ms);
        } else if (old < h->blocks + h->count && old->freed_ms == NEVER) {
            old->freed_ms = now_ms;
            const uint64_t address = (uint64_t)(old - h->blocks + 1) * 16;
            assert_int_equal(test_heap_free(&h->heap, &h->thread, address, false), ERR_OK);
        }
    }
}

static uint32_t step_of(int64_t time_ms, const struct recording *r, uint32_t shift)
{
    return (uint32_t)((uint64_t)time_ms / r->slice_ms) >> shift << shift;
}

static void compare_cells(const struct history *h, const struct recording *r)
{
    static struct rec_cell want[ROWS][SERIES_SLICES_MAX];
    memset(want, 0, sizeof(want));
    const uint32_t shift = h->aggregator.totals.rows.cell_shift;
    for (size_t i = 0; i < h->count; i++) {
        const struct past_block *block = h->blocks + i;
        struct rec_cell *born = &want[block->row][step_of(block->born_ms, r, shift)];
        born->allocations++;
        born->allocated_bytes += block->size_bytes;
        if (block->freed_ms != NEVER) {
            struct rec_cell *freed = &want[block->row][step_of(block->freed_ms, r, shift)];
            freed->frees++;
            freed->freed_bytes += block->size_bytes;
        }
    }
    size_t at = 0;
    for (uint32_t row = 0; row < ROWS; row++) {
        for (uint32_t slice = 0; slice < r->slice_count; slice++) {
            const struct rec_cell *cell = &want[row][slice];
            if (cell->allocations + cell->frees == 0) {
                continue;
            }
            assert_true(at < r->cell_count);
            assert_int_equal(r->cells[at].row, h->rows[row]);
            assert_int_equal(r->cells[at].slice, slice);
            assert_int_equal(r->cells[at].allocations, cell->allocations);
            assert_int_equal(r->cells[at].allocated_bytes, cell->allocated_bytes);
            assert_int_equal(r->cells[at].frees, cell->frees);
            assert_int_equal(r->cells[at].freed_bytes, cell->freed_bytes);
            at++;
        }
    }
    assert_int_equal(at, r->cell_count);
}

static int by_place(const void *left, const void *right)
{
    const struct rec_cohort *a = left;
    const struct rec_cohort *b = right;
    if (a->row != b->row) {
        return a->row < b->row ? -1 : 1;
    }
    if (a->born_slice != b->born_slice) {
        return a->born_slice < b->born_slice ? -1 : 1;
    }
    return (a->freed_slice > b->freed_slice) - (a->freed_slice < b->freed_slice);
}

static void compare_cohorts(const struct history *h, const struct recording *r)
{
    struct rec_cohort *want = calloc(h->count, sizeof(*want));
    assert_non_null(want);
    const uint32_t shift = h->aggregator.totals.rows.cohort_shift;
    size_t count = 0;
    for (size_t i = 0; i < h->count; i++) {
        const struct past_block *block = h->blocks + i;
        const uint32_t born = step_of(block->born_ms, r, shift);
        const uint32_t freed =
            block->freed_ms == NEVER ? REC_NONE : step_of(block->freed_ms, r, shift);
        if (born != freed) {
            want[count++] = (struct rec_cohort){.row = h->rows[block->row],
                                                .born_slice = born,
                                                .freed_slice = freed,
                                                .blocks = 1,
                                                .bytes = block->size_bytes};
        }
    }
    qsort(want, count, sizeof(*want), by_place);
    size_t at = 0;
    for (size_t i = 0; i < count;) {
        struct rec_cohort sum = want[i++];
        for (; i < count && by_place(&sum, want + i) == 0; i++) {
            sum.blocks++;
            sum.bytes += want[i].bytes;
        }
        assert_true(at < r->cohort_count);
        assert_int_equal(by_place(r->cohorts + at, &sum), 0);
        assert_int_equal(r->cohorts[at].blocks, sum.blocks);
        assert_int_equal(r->cohorts[at].bytes, sum.bytes);
        at++;
    }
    assert_int_equal(at, r->cohort_count);
    free(want);
}

static void history_is_that_of_all_blocks_at_every_resolution(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t step_ms;
        size_t cells_max;
        size_t cohorts_max;
    } cases[] = {
        {"all in one slice", 0, 100000, 100000}, {"no merging", 1, 100000, 100000},
        {"slices merge", 64, 100000, 100000},    {"few cohorts", 64, 100000, 300},
        {"few cells", 64, 500, 100000},          {"few of both", 32, 700, 100},
        {"next to none", 512, 10, 10},           {"few, then a long time", 1 << 20, 300, 300},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        static struct history h;
        open_history(&h, cases[i].cells_max, cases[i].cohorts_max);
        live(&h, cases[i].step_ms, i + 1);
        struct whole_snapshot whole;
        whole_snapshot_take(&h.aggregator, &whole);
        const struct recording *r = &whole.recording;
        print_message("%s: %zu slices of %lu ms, %zu cells (shift %u), %zu cohorts (shift %u)\n",
                      cases[i].name, r->slice_count, (unsigned long)r->slice_ms, r->cell_count,
                      h.aggregator.totals.rows.cell_shift, r->cohort_count,
                      h.aggregator.totals.rows.cohort_shift);
        compare_cells(&h, r);
        compare_cohorts(&h, r);
        assert_true(cell_table_count(&h.aggregator.totals.rows.cells) <=
                    cases[i].cells_max / 4 + (size_t)ROWS * 5);
        assert_true(h.aggregator.totals.rows.cohort_shift >= h.aggregator.totals.rows.cell_shift);
        struct recording_findings findings = {0};
        assert_int_equal(recording_check(r, &findings), ERR_OK);
        assert_int_equal(recording_findings_count(&findings), 0);
        recording_findings_release(&findings);
        whole_snapshot_release(&whole);
        close_history(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(history_is_that_of_all_blocks_at_every_resolution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
