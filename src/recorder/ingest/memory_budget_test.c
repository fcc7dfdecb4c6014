// SPDX-License-Identifier: MIT
// memory_budget: what is merged and sampled at which size, and that sums stay right on average; and
// a lane that is read while stacks use their part of the memory.
#include "aggregate/memory_budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "recorder/ingest/test_session.h"
#include "session/wire.h"

#define MIB ((uint64_t)1 << 20)

static void each_part_has_its_own_bounds(void **state)
{
    (void)state;
    static const struct {
        uint64_t own_mib;
        uint64_t block_mib; // of them
        enum memory_merging merging;
        uint32_t level;
    } cases[] = {
        {20, 0, MEMORY_MERGES_NOTHING, 0},    {139, 0, MEMORY_MERGES_NOTHING, 0},
        {140, 0, MEMORY_MERGES_DEEP, 0},      {159, 0, MEMORY_MERGES_DEEP, 0},
        {160, 0, MEMORY_MERGES_MOST, 0},      {169, 0, MEMORY_MERGES_MOST, 0},
        {170, 0, MEMORY_MERGES_ALL, 0},       {200, 69, MEMORY_MERGES_NOTHING, 0},
        {200, 71, MEMORY_MERGES_NOTHING, 1},  {200, 72, MEMORY_MERGES_NOTHING, 3},
        {210, 80, MEMORY_MERGES_NOTHING, 10}, {200, 90, MEMORY_MERGES_NOTHING, 20},
        {200, 91, MEMORY_MERGES_NOTHING, 20}, {320, 200, MEMORY_MERGES_NOTHING, 20},
        {320, 140, MEMORY_MERGES_ALL, 20},    {0, 100, MEMORY_MERGES_NOTHING, 20},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct memory_budget budget = {.max_bytes = 320 * MIB};
        memory_budget_update(&budget, cases[i].own_mib * MIB,
                             cases[i].block_mib * MIB / MEMORY_BUDGET_BLOCK_BYTES);
        print_message("%llu MiB, %llu of blocks\n", (unsigned long long)cases[i].own_mib,
                      (unsigned long long)cases[i].block_mib);
        assert_int_equal(budget.merging, cases[i].merging);
        assert_int_equal(budget.level, cases[i].level);
        const enum memory_merging before = budget.merging;
        memory_budget_update(&budget, 0, 0); // merging never decreases
        assert_int_equal(budget.merging, before);
        assert_int_equal(budget.level, 0);
        struct memory_budget none = {0};
        memory_budget_update(&none, UINT64_MAX, UINT64_MAX / MEMORY_BUDGET_BLOCK_BYTES);
        assert_int_equal(none.merging, MEMORY_MERGES_NOTHING);
        assert_int_equal(none.level, 0);
    }
}

// Blocks of one size: the kept blocks stand for about as many as there are, exactly if all are
// kept, and for no more than a record can state.
static void sums_are_right_on_average(void **state)
{
    (void)state;
    enum {
        BLOCKS = 200000
    };
    static const struct {
        uint32_t level;
        uint64_t size_bytes;
        uint32_t shift; // its sampling weight before
        uint32_t expected_shift;
    } cases[] = {
        {0, 16, 0, 0}, {1, 16, 0, 1},   {6, 100, 0, 6},   {6, 256, 0, 4}, {6, 1 << 20, 0, 0},
        {3, 64, 2, 5}, {20, 64, 4, 20}, {20, 64, 20, 20}, {9, 0, 0, 9},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct memory_budget budget = {.level = cases[i].level, .random = 4711};
        uint64_t kept = 0;
        for (int k = 0; k < BLOCKS; k++) {
            uint32_t shift = cases[i].shift;
            if (memory_budget_takes(&budget, cases[i].size_bytes, &shift)) {
                kept++;
                assert_int_equal(shift, cases[i].expected_shift);
            }
        }
        assert_int_equal(kept + budget.unkept_blocks, BLOCKS);
        const uint32_t thinned = cases[i].expected_shift - cases[i].shift;
        const uint64_t wanted = BLOCKS >> thinned; // and five standard deviations around it
        const uint64_t deviation = thinned == 0 ? 0 : 5 * (1 + (BLOCKS >> (thinned / 2)) / 400);
        print_message("level %u, %llu bytes: %llu kept\n", cases[i].level,
                      (unsigned long long)cases[i].size_bytes, (unsigned long long)kept);
        assert_in_range(kept + deviation, wanted, wanted + 2 * deviation);
    }
}

struct fixture {
    struct test_session on;
    struct lane_producer producer;
    uint64_t clock_ms;
};

static void open_fixture(struct fixture *f)
{
    *f = (struct fixture){.clock_ms = 1};
    test_session_open(&f->on, SESSION_FOLLOW_CHILDREN);
    const uint32_t process = test_session_add_process(&f->on);
    test_session_add_lane(&f->on, process, &f->producer);
    assert_true(lane_producer_tick(&f->producer));
}

static void pass(struct fixture *f)
{
    bool was_busy;
    f->clock_ms++;
    atomic_store(&f->on.session.header->clock_ms, f->clock_ms);
    drain_note_time(&f->on.drain, f->clock_ms, f->clock_ms * 1000000);
    assert_int_equal(drain_pass(&f->on.drain, f->clock_ms, false, &was_busy), ERR_OK);
    assert_int_equal(f->on.drain.corrupt_lanes, 0);
}

// Make a stack of `count` frames from the program's entry inwards, and a block of it.
static void
allocate_at(struct fixture *f, uint32_t slot, uint64_t base, const uint64_t *pcs, uint32_t count)
{
    static uint64_t address = 0x10000;
    struct lane_producer *p = &f->producer;
    uint64_t *frames = lane_producer_begin_stack(p, slot, WIRE_STACK_HAS_SLOT, base, count);
    assert_non_null(frames);
    for (uint32_t i = 0; i < count; i++) {
        frames[i] = pcs[i];
    }
    lane_producer_advance(p, lane_stack_words(count));
    uint64_t *words = lane_producer_reserve(p, 2);
    assert_non_null(words);
    words[0] = wire_word(WIRE_ALLOC, address += 16);
    words[1] = wire_slot_size(slot, 10);
    lane_producer_advance(p, 2);
    lane_producer_publish(p);
    pass(f);
}

// Describe the offsets of a row's frames, innermost first, as a text; 0: omitted frames.
static void describe(const struct aggregator *aggregator, size_t row, struct strbuf *out)
{
    strbuf_clear(out);
    const struct rec_node *nodes = aggregator->stacks.nodes.items;
    for (uint32_t node = aggregator->totals.rows.rows.items[row].node; node != 0;
         node = nodes[node].parent) {
        const struct rec_frame *frame = aggregator->stacks.frames.items + nodes[node].frame;
        assert_true((frame->flags == REC_FRAME_CUT) == (frame->offset == 0));
        strbuf_printf(out, " %llx", (unsigned long long)frame->offset);
    }
}

static void new_stacks_are_merged_and_known_ones_are_not(void **state)
{
    (void)state;
    static const struct {
        enum memory_merging merging;
        const char *rows[3];
    } cases[] = {
        {MEMORY_MERGES_NOTHING, {" 6 5 4 3 2 1", " 9 8 5 4 3 2 1", NULL}},
        {MEMORY_MERGES_DEEP, {" 6 5 4 3 2 1", " 9 0 5 4 3 2 1", " b 0"}},
        {MEMORY_MERGES_MOST, {" 6 5 4 3 2 1", " 9 0 4 3 2 1", " b 0"}},
        {MEMORY_MERGES_ALL, {" 6 5 4 3 2 1", " 9 0", " b 0"}},
    };
    static const uint64_t known[] = {1, 2, 3, 4, 5, 6};
    static const uint64_t fresh[] = {1, 2, 3, 4, 5, 8, 9};
    static const uint64_t beyond[] = {10, 11};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        static struct fixture f;
        open_fixture(&f);
        allocate_at(&f, 1, 0, known, 6);
        f.on.aggregator.budget.merging = cases[i].merging;
        allocate_at(&f, 2, 0, known, 6);
        allocate_at(&f, 3, 0, fresh, 7);
        allocate_at(&f, 4, 0, fresh, 7);
        if (cases[i].rows[2] != NULL) { // on a base without kept frames
            allocate_at(&f, 5, 4711, beyond, 2);
        }
        CLEANUP(strbuf_release) struct strbuf text = {0};
        size_t count = cases[i].rows[2] != NULL ? 3 : 2;
        assert_int_equal(f.on.aggregator.totals.rows.rows.len, count);
        for (size_t row = 0; row < count; row++) {
            describe(&f.on.aggregator, row, &text);
            assert_string_equal(strbuf_text(&text), cases[i].rows[row]);
        }
        assert_int_equal(f.on.aggregator.totals.sums.allocations, 2 + count);
        test_session_close(&f.on);
    }
}

// Nodes and rows stay below a bound with any input.
static void when_all_is_merged_tables_stay_as_they_are(void **state)
{
    (void)state;
    enum {
        STACKS = 40000,
        FRAMES = 5,
        ADDED_MAX = 16384 + 2
    };
    static struct fixture f;
    open_fixture(&f);
    f.on.aggregator.budget.merging = MEMORY_MERGES_ALL;
    for (uint64_t i = 0; i < STACKS; i++) {
        const uint64_t pcs[FRAMES] = {i, i + 1, 2 * i, 3 * i, STACKS + i};
        allocate_at(&f, (uint32_t)(i % 100), 0, pcs, FRAMES);
    }
    assert_in_range(f.on.aggregator.stacks.nodes.len, 8, ADDED_MAX);
    assert_in_range(f.on.aggregator.totals.rows.rows.len, 8, ADDED_MAX);
    assert_int_equal(f.on.aggregator.totals.sums.allocations, STACKS);
    assert_int_equal(f.on.aggregator.budget.merged_stacks, STACKS);
    test_session_close(&f.on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_part_has_its_own_bounds),
        cmocka_unit_test(sums_are_right_on_average),
        cmocka_unit_test(new_stacks_are_merged_and_known_ones_are_not),
        cmocka_unit_test(when_all_is_merged_tables_stay_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
