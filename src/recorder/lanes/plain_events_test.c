// SPDX-License-Identifier: MIT
// plain_events: a run of events counts as the same events one by one, and ends where it has to.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/test_support/random_numbers.h"
#include "recorder/lanes/plain_events.h"
#include "session/wire.h"

enum {
    PLACES = 300,
    TICKS = 1500, // more than time slices: they merge
    WORDS = 120,  // of a tick
    STEP_BYTES = 48,
};

#define BASE_ADDRESS 0x5555000u

struct heap {
    struct aggregator aggregator;
    struct aggregator_process *process;
    struct aggregator_thread thread;
    struct u32_vec rows; // by slot
};

static void open_heap(struct heap *heap, uint32_t slots)
{
    memset(heap, 0, sizeof(*heap));
    assert_int_equal(aggregator_init(&heap->aggregator, 7), ERR_OK);
    assert_int_equal(aggregator_process_begin(&heap->aggregator, &(struct rec_process){.pid = 1},
                                              &heap->process),
                     ERR_OK);
    aggregator_thread_begin(&heap->thread, heap->process, 0, 1, 0);
    for (uint32_t slot = 0; slot < slots; slot++) {
        uint32_t row;
        assert_int_equal(aggregator_row(&heap->aggregator, &heap->thread, slot, &row), ERR_OK);
        assert_int_equal(u32_vec_push(&heap->rows, row), ERR_OK);
    }
}

static void close_heap(struct heap *heap)
{
    u32_vec_release(&heap->rows);
    aggregator_release(&heap->aggregator);
}

static void count_one_by_one(struct heap *heap, const uint64_t *words, size_t len)
{
    for (size_t at = 0; at < len;) {
        const uint64_t address = words[at] >> 8;
        if (wire_tag_of(words[at]) == WIRE_FREE) {
            assert_int_equal(aggregator_free(&heap->aggregator, &heap->thread, address, false),
                             ERR_OK);
            at++;
        } else {
            const uint32_t row = heap->rows.items[words[at + 1] >> WIRE_SIZE_BITS];
            assert_int_equal(aggregator_allocate(&heap->aggregator, &heap->thread, address, row,
                                                 words[at + 1] & WIRE_SIZE_MAX),
                             ERR_OK);
            at += 2;
        }
    }
}

// Count them in runs of random lengths. Some runs cut a record.
static void count_in_runs(struct heap *heap, const uint64_t *words, size_t len, uint64_t *random)
{
    struct plain_words run = {.words = words};
    while (run.at < len) {
        run.len = run.at + 2 + next_random(random) % 40;
        run.len = run.len < len ? run.len : len;
        assert_true(plain_events_are(&heap->aggregator, &heap->thread));
        assert_int_equal(plain_events_count(&heap->aggregator, &heap->thread, &heap->rows, &run),
                         ERR_OK);
        assert_true(run.at + 1 >= run.len);
    }
}

static void assert_same_rows(struct row_table *a, struct row_table *b)
{
    struct rec_cell_vec cells[2] = {0};
    struct rec_bucket_vec buckets[2] = {0};
    struct rec_cohort_vec cohorts[2] = {0};
    struct row_table *tables[2] = {a, b};
    assert_int_equal(a->rows.len, b->rows.len);
    assert_memory_equal(a->rows.items, b->rows.items, a->rows.len * sizeof(struct rec_row));
    for (int i = 0; i < 2; i++) {
        struct row_table *t = tables[i];
        for (uint32_t row = 0; row < t->rows.len; row++) {
            const struct rec_row *r = t->rows.items + row;
            const struct row_extra *extra = t->extras.items + row;
            assert_int_equal(cell_table_collect(&t->cells, &extra->cells, r, row, 0, &cells[i]),
                             ERR_OK);
            assert_int_equal(bucket_set_collect(&extra->histograms[ROW_ALLOCATED], row,
                                                r->allocations, r->allocated_bytes, &buckets[i]),
                             ERR_OK);
            assert_int_equal(bucket_set_collect(&extra->histograms[ROW_FREED], row, r->frees,
                                                r->freed_bytes, &buckets[i]),
                             ERR_OK);
        }
        assert_int_equal(cohort_table_collect(&t->cohorts, &cohorts[i]), ERR_OK);
    }
    assert_int_equal(cells[0].len, cells[1].len);
    assert_memory_equal(cells[0].items, cells[1].items, cells[0].len * sizeof(struct rec_cell));
    assert_int_equal(buckets[0].len, buckets[1].len);
    assert_memory_equal(buckets[0].items, buckets[1].items,
                        buckets[0].len * sizeof(struct rec_bucket));
    assert_int_equal(cohorts[0].len, cohorts[1].len);
    assert_memory_equal(cohorts[0].items, cohorts[1].items,
                        cohorts[0].len * sizeof(struct rec_cohort));
    for (int i = 0; i < 2; i++) {
        rec_cell_vec_release(&cells[i]);
        rec_bucket_vec_release(&buckets[i]);
        rec_cohort_vec_release(&cohorts[i]);
    }
}

static void assert_same(struct heap *a, struct heap *b)
{
    static struct rec_slice slices[2][SERIES_SLICES_MAX];
    struct heap_totals *x = &a->aggregator.totals;
    struct heap_totals *y = &b->aggregator.totals;
    assert_int_equal(aggregator_complete_rows(&a->aggregator), ERR_OK);
    assert_int_equal(aggregator_complete_rows(&b->aggregator), ERR_OK);
    assert_memory_equal(&x->sums, &y->sums, sizeof(x->sums));
    assert_int_equal(x->live_blocks, y->live_blocks);
    assert_int_equal(x->peak_bytes, y->peak_bytes);
    assert_int_equal(x->peak_blocks, y->peak_blocks);
    assert_int_equal(x->peak_time_ms, y->peak_time_ms);
    assert_int_equal(x->rows.peak_number, y->rows.peak_number);
    assert_int_equal(a->process->live_bytes, b->process->live_bytes);
    assert_int_equal(a->process->record.peak_bytes, b->process->record.peak_bytes);
    assert_int_equal(a->process->live.live_count, b->process->live.live_count);
    assert_int_equal(a->thread.freed_bytes, b->thread.freed_bytes);
    assert_int_equal(series_collect(&x->series, &x->sums, slices[0]),
                     series_collect(&y->series, &y->sums, slices[1]));
    assert_memory_equal(slices[0], slices[1], sizeof(slices[0]));
    assert_same_rows(&x->rows, &y->rows);
}

// Make the words of a tick. Blocks that are alive are freed, others are allocated.
static size_t make_words(uint64_t *words, bool *is_alive, uint64_t *random, uint32_t slots)
{
    size_t len = 0;
    while (len + 2 <= WORDS) {
        const uint32_t place = (uint32_t)(next_random(random) % PLACES);
        const uint64_t address = BASE_ADDRESS + (uint64_t)place * STEP_BYTES;
        if (is_alive[place]) {
            words[len++] = wire_word(WIRE_FREE, address);
        } else {
            words[len++] = wire_word(WIRE_ALLOC, address);
            words[len++] = wire_slot_size((uint32_t)(next_random(random) % slots),
                                          (uint64_t)1 << next_random(random) % 22);
        }
        is_alive[place] = !is_alive[place];
    }
    return len;
}

static void runs_count_as_single_events(uint32_t slots)
{
    static struct heap runs;
    static struct heap singly;
    static bool is_alive[PLACES];
    uint64_t random = 11;
    memset(is_alive, 0, sizeof(is_alive));
    open_heap(&runs, slots);
    open_heap(&singly, slots);
    for (uint64_t tick = 1; tick < TICKS; tick++) {
        uint64_t words[WORDS];
        const size_t len = make_words(words, is_alive, &random, slots);
        count_in_runs(&runs, words, len, &random);
        count_one_by_one(&singly, words, len);
        assert_int_equal(aggregator_tick(&runs.aggregator, tick), ERR_OK);
        assert_int_equal(aggregator_tick(&singly.aggregator, tick), ERR_OK);
    }
    assert_same(&runs, &singly);
    close_heap(&runs);
    close_heap(&singly);
}

static void few_rows_count_as_singly(void **state)
{
    (void)state;
    runs_count_as_single_events(10);
}

static void many_rows_count_as_singly(void **state)
{
    (void)state;
    runs_count_as_single_events(2 * ROWS_NEAR);
}

// Count `len` words in one run. Return how many were counted.
static size_t run_of(struct heap *heap, const uint64_t *words, size_t len)
{
    struct plain_words run = {.words = words, .len = len};
    assert_int_equal(plain_events_count(&heap->aggregator, &heap->thread, &heap->rows, &run),
                     ERR_OK);
    return run.at;
}

static void a_run_ends_before_what_is_not_plain(void **state)
{
    (void)state;
    static struct heap heap;
    open_heap(&heap, 2);
    const uint64_t allocation[] = {wire_word(WIRE_ALLOC, BASE_ADDRESS), wire_slot_size(1, 100)};
    const uint64_t known = wire_word(WIRE_FREE, BASE_ADDRESS);
    const uint64_t unknown = wire_word(WIRE_FREE, BASE_ADDRESS + 16);
    const uint64_t tick = wire_word(WIRE_TICK, 5);
    const uint64_t others[][3] = {
        {unknown, known},                                                 // free of no block
        {wire_word(WIRE_FREE, 0), known},                                 // no address
        {wire_word(WIRE_ALLOC, BASE_ADDRESS + 16), wire_slot_size(2, 1)}, // unknown stack
        {wire_word(WIRE_ALLOC, 0), wire_slot_size(1, 1)},                 // no address
        {tick, known},
    };
    assert_int_equal(run_of(&heap, allocation, 1), 0); // incomplete
    assert_int_equal(run_of(&heap, allocation, 2), 2);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_int_equal(run_of(&heap, others[i], 2), 0);
    }
    assert_int_equal(heap.aggregator.totals.live_blocks, 1);
    assert_int_equal(run_of(&heap, &known, 1), 1);
    assert_int_equal(heap.aggregator.totals.sums.live_bytes, 0);
    assert_int_equal(heap.aggregator.totals.sums.frees, 1);
    close_heap(&heap);
}

static enum err observe_nothing(void *context, const struct observed_event *what)
{
    (void)context;
    (void)what;
    return ERR_OK;
}

static void events_are_not_plain_while_they_concern_others(void **state)
{
    (void)state;
    static struct heap heap;
    open_heap(&heap, 1);
    struct aggregator *aggregator = &heap.aggregator;
    const uint32_t row = heap.rows.items[0];
    assert_true(plain_events_are(aggregator, &heap.thread));
    observer_add(&aggregator->observers, (struct observer){&heap, observe_nothing});
    assert_false(plain_events_are(aggregator, &heap.thread));
    observer_remove(&aggregator->observers, &heap);
    aggregator->budget.level = 1;
    assert_false(plain_events_are(aggregator, &heap.thread));
    aggregator->budget.level = 0;
    assert_int_equal(aggregator_free(aggregator, &heap.thread, BASE_ADDRESS, false), ERR_OK);
    assert_false(plain_events_are(aggregator, &heap.thread)); // the free waits for its block
    aggregator_expire_frees(aggregator, heap.process, UINT64_MAX);
    assert_true(plain_events_are(aggregator, &heap.thread));
    struct aggregator_thread other;
    aggregator_thread_begin(&other, heap.process, 1, 2, 0);
    other.stamp = 9;
    assert_false(plain_events_are(aggregator, &other));
    assert_int_equal(aggregator_allocate(aggregator, &other, BASE_ADDRESS, row, 8), ERR_OK);
    assert_false(plain_events_are(aggregator, &heap.thread));
    close_heap(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_rows_count_as_singly),
        cmocka_unit_test(many_rows_count_as_singly),
        cmocka_unit_test(a_run_ends_before_what_is_not_plain),
        cmocka_unit_test(events_are_not_plain_while_they_concern_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
