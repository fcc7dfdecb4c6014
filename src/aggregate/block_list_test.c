// SPDX-License-Identifier: MIT
// block_list against a model that visits all blocks at each event.
#include "aggregate/block_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregate/test_support/test_heap.h"
#include "base/test_support/random_numbers.h"

enum {
    ROWS = 5,
    ADDRESSES = 40, // few, so that they are reused often
    EVENTS = 4000,
};

struct model_block {
    bool is_live;
    bool was_at_peak;
    struct rec_block block;
};

struct trial {
    struct aggregator aggregator;
    struct block_list list;
    struct test_heap heap;
    struct aggregator_process *process;
    struct aggregator_thread threads[2];
    uint32_t rows[2][ROWS];
    struct model_block *past; // all blocks so far
    size_t past_count;
    int64_t at_address[ADDRESSES]; // index in past, -1: no live block
    uint64_t live_bytes;
    uint64_t peak_bytes;
};

static void open_trial(struct trial *t)
{
    *t = (struct trial){.past = calloc(EVENTS, sizeof(*t->past)), .list = {.seed = 11}};
    assert_non_null(t->past);
    memset(t->at_address, -1, sizeof(t->at_address));
    assert_int_equal(aggregator_init(&t->aggregator), ERR_OK);
    t->list.rows = &t->aggregator.totals.rows;
    t->heap = (struct test_heap){.aggregator = &t->aggregator, .list = &t->list};
    const struct rec_process record = {.pid = 1, .exit_status = -1};
    assert_int_equal(aggregator_process_begin(&t->aggregator, &record, &t->process), ERR_OK);
    for (uint32_t thread = 0; thread < 2; thread++) {
        aggregator_thread_begin(&t->threads[thread], t->process, thread, thread + 1, 0);
        for (uint32_t i = 0; i < ROWS; i++) {
            uint32_t frame;
            uint32_t node;
            assert_int_equal(stack_table_frame(&t->aggregator.stacks, REC_NONE, i + 1, 0, &frame),
                             ERR_OK);
            assert_int_equal(stack_table_node(&t->aggregator.stacks, 0, frame, &node), ERR_OK);
            assert_int_equal(
                aggregator_row(&t->aggregator, &t->threads[thread], node, &t->rows[thread][i]),
                ERR_OK);
        }
    }
}

static void close_trial(struct trial *t)
{
    test_heap_release(&t->heap);
    block_list_release(&t->list);
    aggregator_release(&t->aggregator);
    free(t->past);
}

static void model_peak(struct trial *t)
{
    if (t->live_bytes <= t->peak_bytes) {
        return;
    }
    t->peak_bytes = t->live_bytes;
    for (size_t i = 0; i < t->past_count; i++) {
        t->past[i].was_at_peak = t->past[i].is_live;
    }
}

static void allocate(struct trial *t, size_t place, uint64_t random, uint64_t now_ms)
{
    const size_t thread = random & 1;
    struct rec_block block = {.address = (place + 1) * 16,
                              .size_bytes = 1 + (random >> 8) % 3, // often equal
                              .born_ms = now_ms,
                              .row = t->rows[thread][(random >> 16) % ROWS]};
    t->at_address[place] = (int64_t)t->past_count;
    t->past[t->past_count++] = (struct model_block){.is_live = true, .block = block};
    t->live_bytes += block.size_bytes;
    model_peak(t);
    assert_int_equal(test_heap_allocate(&t->heap, &t->threads[thread], block.address, block.row,
                                        block.size_bytes),
                     ERR_OK);
}

static void give_back(struct trial *t, size_t place, uint64_t random, uint64_t now_ms)
{
    struct model_block *past = &t->past[t->at_address[place]];
    t->at_address[place] = -1;
    past->is_live = false;
    past->block.freed_ms = now_ms;
    t->live_bytes -= past->block.size_bytes;
    assert_int_equal(test_heap_free(&t->heap, &t->threads[random & 1], past->block.address, false),
                     ERR_OK);
}

static void run(struct trial *t, uint64_t seed)
{
    uint64_t random = seed;
    uint64_t now_ms = 0;
    for (size_t i = 0; i < EVENTS; i++) {
        const uint64_t r = next_random(&random);
        now_ms += r % 7 == 0; // several events a tick
        t->threads[0].tick_ms = now_ms;
        t->threads[1].tick_ms = now_ms;
        assert_int_equal(aggregator_tick(&t->aggregator, now_ms), ERR_OK);
        const size_t place = (r >> 20) % ADDRESSES;
        if (t->at_address[place] < 0) {
            allocate(t, place, next_random(&random), now_ms);
        } else {
            give_back(t, place, r >> 40, now_ms);
        }
    }
}

static int compare(const void *left, const void *right)
{
    const struct rec_block *a = left;
    const struct rec_block *b = right;
    const uint64_t keys_a[] = {a->row,      a->address,    a->born_ms,
                               a->freed_ms, a->size_bytes, a->flags};
    const uint64_t keys_b[] = {b->row,      b->address,    b->born_ms,
                               b->freed_ms, b->size_bytes, b->flags};
    for (size_t i = 0; i < sizeof(keys_a) / sizeof(*keys_a); i++) {
        if (keys_a[i] != keys_b[i]) {
            return keys_a[i] < keys_b[i] ? -1 : 1;
        }
    }
    return 0;
}

static void want(const struct trial *t, struct rec_block_vec *out)
{
    for (size_t i = 0; i < t->past_count; i++) {
        const struct model_block *past = &t->past[i];
        struct rec_block block = past->block;
        block.flags =
            (past->is_live ? REC_BLOCK_END : 0) | (past->was_at_peak ? REC_BLOCK_PEAK : 0);
        if (block.flags != 0) {
            assert_int_equal(rec_block_vec_push(out, block), ERR_OK);
        }
    }
}

static void assert_same_blocks(struct rec_block_vec *have, struct rec_block_vec *wanted)
{
    assert_int_equal(have->len, wanted->len);
    if (have->items == NULL || wanted->items == NULL) {
        fail_msg("a trial ends with nothing alive");
        return; // for the analyser, which does not know that this is unreachable
    }
    qsort(have->items, have->len, sizeof(*have->items), compare);
    qsort(wanted->items, wanted->len, sizeof(*wanted->items), compare);
    for (size_t i = 0; i < have->len; i++) {
        assert_int_equal(compare(&have->items[i], &wanted->items[i]), 0);
    }
}

static void lists_what_a_model_lists(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct trial t;
        struct rec_block_vec have = {0};
        struct rec_block_vec wanted = {0};
        open_trial(&t);
        run(&t, seed * 0x9e3779b97f4a7c15u);
        assert_int_equal(t.aggregator.totals.peak_bytes, t.peak_bytes);
        assert_int_equal(test_heap_list_ending(&t.heap, t.process), ERR_OK);
        assert_int_equal(block_list_collect(&t.list, t.aggregator.totals.rows.peak_number, &have),
                         ERR_OK);
        want(&t, &wanted);
        assert_same_blocks(&have, &wanted);
        assert_int_equal(block_list_omitted(&t.list), 0);
        rec_block_vec_release(&have);
        rec_block_vec_release(&wanted);
        close_trial(&t);
    }
}

// The live blocks of a process at its end were live at the peak only if no later peak was set
// without it.
static void a_later_peak_forgets_the_dead(void **state)
{
    (void)state;
    struct trial t;
    open_trial(&t);
    allocate(&t, 0, 0, 0);
    assert_int_equal(test_heap_end_process(&t.heap, t.process, 1), ERR_OK);
    struct rec_block_vec have = {0};
    assert_int_equal(block_list_collect(&t.list, t.aggregator.totals.rows.peak_number, &have),
                     ERR_OK);
    assert_int_equal(have.len, 1);
    assert_int_equal(have.items[0].flags, REC_BLOCK_END | REC_BLOCK_PEAK);
    rec_block_vec_clear(&have);

    struct aggregator_process *second = NULL;
    const struct rec_process record = {.pid = 2, .exit_status = -1};
    assert_int_equal(aggregator_process_begin(&t.aggregator, &record, &second), ERR_OK);
    aggregator_thread_begin(&t.threads[0], second, 0, 2, 1);
    uint32_t row = 0;
    assert_int_equal(aggregator_row(&t.aggregator, &t.threads[0], 1, &row), ERR_OK);
    assert_int_equal(test_heap_allocate(&t.heap, &t.threads[0], 64, row, 1000), ERR_OK);
    assert_int_equal(test_heap_list_ending(&t.heap, second), ERR_OK);
    assert_int_equal(block_list_collect(&t.list, t.aggregator.totals.rows.peak_number, &have),
                     ERR_OK);
    assert_int_equal(have.len, 2);
    assert_int_equal(have.items[0].flags, REC_BLOCK_END);
    assert_int_equal(have.items[1].flags, REC_BLOCK_END | REC_BLOCK_PEAK);
    rec_block_vec_release(&have);
    close_trial(&t);
}

static void beyond_the_cap_each_stack_keeps_its_share(void **state)
{
    (void)state;
    enum {
        MANY = BLOCKS_LISTED_MAX + 1000,
        FEW = 10
    };
    struct trial t;
    open_trial(&t);
    for (uint64_t i = 0; i < MANY + FEW; i++) {
        assert_int_equal(test_heap_allocate(&t.heap, &t.threads[0], (i + 1) * 16,
                                            t.rows[0][i < MANY ? 0 : 1], 8),
                         ERR_OK);
    }
    for (uint64_t i = 0; i < 100; i++) { // live at the peak, freed since
        assert_int_equal(test_heap_free(&t.heap, &t.threads[0], (i + 1) * 16, false), ERR_OK);
    }
    struct rec_block_vec have = {0};
    assert_int_equal(test_heap_list_ending(&t.heap, t.process), ERR_OK);
    assert_int_equal(block_list_collect(&t.list, t.aggregator.totals.rows.peak_number, &have),
                     ERR_OK);
    size_t counts[2] = {0};
    for (size_t i = 0; i < have.len; i++) {
        assert_int_equal(have.items[i].flags & REC_BLOCK_PEAK, REC_BLOCK_PEAK);
        counts[have.items[i].row == t.rows[0][1]]++;
    }
    assert_int_equal(counts[1], FEW);
    assert_true(have.len <= BLOCKS_LISTED_MAX + 100);
    assert_true(counts[0] >= BLOCKS_LISTED_MAX / 2);
    assert_int_equal(have.len + block_list_omitted(&t.list), MANY + FEW);
    rec_block_vec_release(&have);
    close_trial(&t);
}

// The list has a limited number of blocks that were live at the peak and freed; the others are
// counted.
static void what_is_freed_beyond_the_cap_is_counted(void **state)
{
    (void)state;
    enum {
        MANY = BLOCKS_LISTED_MAX + 77
    };
    struct trial t;
    open_trial(&t);
    for (uint64_t i = 0; i < MANY; i++) {
        assert_int_equal(test_heap_allocate(&t.heap, &t.threads[0], (i + 1) * 16, t.rows[0][0], 8),
                         ERR_OK);
    }
    for (uint64_t i = 0; i < MANY; i++) {
        assert_int_equal(test_heap_free(&t.heap, &t.threads[0], (i + 1) * 16, false), ERR_OK);
    }
    struct rec_block_vec have = {0};
    assert_int_equal(block_list_collect(&t.list, t.aggregator.totals.rows.peak_number, &have),
                     ERR_OK);
    assert_int_equal(have.len, BLOCKS_LISTED_MAX);
    assert_int_equal(block_list_omitted(&t.list), MANY - BLOCKS_LISTED_MAX);
    rec_block_vec_release(&have);
    close_trial(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_what_a_model_lists),
        cmocka_unit_test(a_later_peak_forgets_the_dead),
        cmocka_unit_test(beyond_the_cap_each_stack_keeps_its_share),
        cmocka_unit_test(what_is_freed_beyond_the_cap_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
