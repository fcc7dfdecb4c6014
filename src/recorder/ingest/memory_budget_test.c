// SPDX-License-Identifier: MIT
// memory_budget: what is merged and sampled at which size; and a lane that is read while stacks use
// their part of the memory.
#include "aggregate/memory_budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "recorder/ingest/test_books.h"
#include "recorder/ingest/test_session.h"
#include "session/wire.h"

#define MIB ((uint64_t)1 << 20)

static void each_part_has_its_own_bounds(void **state)
{
    (void)state;
    static const struct {
        uint64_t own_mib;
        uint64_t words_mib;
        bool merges; // with 20,000 entries
        bool is_full;
        uint32_t level;
    } cases[] = {
        {20, 0, false, false, 0},    {139, 0, false, false, 0},   {140, 0, true, false, 0},
        {199, 0, true, false, 0},    {200, 0, false, true, 0},    {130, 69, false, false, 0},
        {130, 70, false, false, 8},  {130, 73, false, false, 9},  {130, 80, false, false, 12},
        {130, 90, false, false, 16}, {130, 91, false, false, 16}, {120, 200, false, false, 16},
        {200, 100, false, true, 16}, {199, 100, true, false, 16}, {0, 100, false, false, 16},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("%llu MiB, %llu of words\n", (unsigned long long)cases[i].own_mib,
                      (unsigned long long)cases[i].words_mib);
        const struct memory_use use = {.own_bytes = cases[i].own_mib * MIB,
                                       .words_bytes = cases[i].words_mib * MIB,
                                       .entries = 20000};
        struct memory_budget budget = {.max_bytes = 320 * MIB};
        assert_int_equal(memory_budget_update(&budget, &use), cases[i].merges);
        assert_int_equal(budget.is_full, cases[i].is_full);
        assert_int_equal(budget.level, cases[i].level);
        assert_false(memory_budget_update(&budget, &(struct memory_use){0}));
        assert_int_equal(budget.is_full, cases[i].is_full); // it stays full
        assert_int_equal(budget.level, 0);
        struct memory_budget keeping = {.max_bytes = 320 * MIB, .keeps_rows = true};
        assert_false(memory_budget_update(&keeping, &use));
        assert_int_equal(keeping.is_full, cases[i].merges || cases[i].is_full);
        struct memory_budget none = {0};
        assert_false(memory_budget_update(
            &none, &(struct memory_use){.own_bytes = UINT64_MAX, .entries = UINT64_MAX}));
        assert_false(none.is_full);
        assert_int_equal(none.level, 0);
    }
}

// What many lanes take beyond the cap is noted at its highest; others are not blamed on them.
static void lanes_beyond_the_cap_are_noted(void **state)
{
    (void)state;
    static const struct {
        uint64_t own_mib;
        uint64_t lanes_mib;
        uint64_t over_mib; // since the first case
    } cases[] = {{320, 0, 0},    {400, 160, 0},  {200, 480, 0},  {201, 480, 1},
                 {90, 1000, 20}, {70, 1000, 20}, {400, 160, 20}, {300, 164, 21}};
    struct memory_budget budget = {.max_bytes = 320 * MIB};
    struct memory_budget none = {0};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("case %zu\n", i);
        const struct memory_use use = {.own_bytes = cases[i].own_mib * MIB,
                                       .lanes_bytes = cases[i].lanes_mib * MIB};
        (void)memory_budget_update(&budget, &use);
        assert_int_equal(budget.over_bytes, cases[i].over_mib * MIB);
        (void)memory_budget_update(&none, &use);
        assert_int_equal(none.over_bytes, 0);
    }
    assert_false(memory_budget_gives_lanes_back(&budget, 160));
    assert_true(memory_budget_gives_lanes_back(&budget, 161));
    assert_false(memory_budget_gives_lanes_back(&none, SESSION_MAX_LANES));
}

// Without a smaller cap words may take as much as all else.
static void usual_words_have_a_cap_of_their_own(void **state)
{
    (void)state;
    static const struct {
        uint64_t words_mib;
        uint32_t level;
    } cases[] = {{69, 0}, {70, 8}, {80, 12}, {90, 16}, {900, 16}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct memory_budget budget = {.max_bytes = 90 * MIB, .is_usual = true};
        const struct memory_use use = {.own_bytes = 20 * MIB,
                                       .words_bytes = cases[i].words_mib * MIB};
        assert_int_equal(memory_budget_words_from(&budget), 70 * MIB);
        assert_false(memory_budget_update(&budget, &use));
        assert_int_equal(budget.level, cases[i].level);
    }
    assert_int_equal(memory_budget_words_from(&(struct memory_budget){0}), UINT64_MAX);
}

// The number of entries at the first merging is the limit from then on, unless memory grows on.
static void entries_are_limited(void **state)
{
    (void)state;
    static const struct {
        uint64_t own_mib;
        uint64_t entries;
        uint64_t left; // after a merging, if there is one
        bool merges;
        uint64_t entries_max;
    } steps[] = {
        {100, 90000, 0, false, 0},        {141, 100000, 50000, true, 100000},
        {139, 50000, 0, false, 100000}, // what merging has left in use
        {139, 99999, 0, false, 100000},   {139, 100000, 50000, true, 100000},
        {155, 50000, 0, false, 100000},   {164, 90000, 0, false, 100000},
        {165, 62500, 0, false, 100000}, // grown, but merging would not help
        {165, 63000, 30000, true, 63000}, {165, 30000, 0, false, 63000},
        {174, 38000, 0, false, 63000},    {175, 38000, 19000, true, 38000},
        {199, 19000, 0, false, 38000}, // not returned by merging, but no growth
        {199, 24000, 0, false, 38000},
    };
    struct memory_budget budget = {.max_bytes = 320 * MIB};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        print_message("step %zu\n", i);
        const struct memory_use use = {.own_bytes = steps[i].own_mib * MIB,
                                       .entries = steps[i].entries};
        assert_int_equal(memory_budget_update(&budget, &use), steps[i].merges);
        assert_int_equal(budget.entries_max, steps[i].entries_max);
        if (steps[i].left != 0) {
            memory_budget_merged(&budget, steps[i].left);
        }
        assert_false(budget.is_full);
    }
    assert_false(memory_budget_is_full(&budget, 47499));
    assert_true(memory_budget_is_full(&budget, 47500)); // until the end of the pass
    memory_budget_merged(&budget, 28501);               // nothing was rare enough
    assert_true(budget.is_full);
    assert_true(memory_budget_is_full(&budget, 0));
    static const struct memory_budget merged = {.max_bytes = 320 * MIB,
                                                .entries_max = 20000,
                                                .entries_left = 10000,
                                                .bytes_left = 160 * MIB};
    budget = merged; // memory grows without stacks
    assert_false(memory_budget_update(
        &budget, &(struct memory_use){.own_bytes = 169 * MIB, .entries = 12500}));
    assert_false(budget.is_full);
    assert_false(memory_budget_update(
        &budget, &(struct memory_use){.own_bytes = 170 * MIB, .entries = 12500}));
    assert_true(budget.is_full);
    budget = (struct memory_budget){.max_bytes = 320 * MIB}; // a pass can add this many
    assert_false(memory_budget_is_full(&budget, 1419945));
    assert_true(memory_budget_is_full(&budget, 1419946));
    assert_true(memory_budget_update(
        &budget, &(struct memory_use){.own_bytes = 100 * MIB, .entries = 1419946}));
    budget = (struct memory_budget){.max_bytes = 320 * MIB}; // something else takes the memory
    assert_false(memory_budget_update(
        &budget, &(struct memory_use){.own_bytes = 150 * MIB, .entries = 16383}));
    assert_false(budget.is_full);
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
    static uint32_t row = 0;
    struct lane_producer *p = &f->producer;
    uint64_t *frames = lane_producer_begin_stack(p, slot, WIRE_STACK_HAS_SLOT, base, count);
    assert_non_null(frames);
    for (uint32_t i = 0; i < count; i++) {
        frames[i] = pcs[i];
    }
    lane_producer_advance(p, lane_stack_words(count));
    test_send_row(p, slot, ++row);
    test_send_event(p, TEST_ALLOCATION, row, 10);
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
        const bool is_merged = frame->flags == REC_FRAME_CUT;
        assert_true(!is_merged || frame->offset == REC_CUT_MERGED);
        strbuf_printf(out, " %llx", is_merged ? 0 : (unsigned long long)frame->offset);
    }
}

static void a_full_table_merges_new_stacks_and_no_known_ones(void **state)
{
    (void)state;
    static const struct {
        bool is_full;
        const char *rows[3];
    } cases[] = {
        {false, {" 6 5 4 3 2 1", " 9 8 5 4 3 2 1", " b 0"}},
        {true, {" 6 5 4 3 2 1", " 9 0 5 4 3 2 1", " b 0"}},
    };
    static const uint64_t known[] = {1, 2, 3, 4, 5, 6};
    static const uint64_t fresh[] = {1, 2, 3, 4, 5, 8, 9};
    static const uint64_t beyond[] = {10, 11};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        static struct fixture f;
        open_fixture(&f);
        allocate_at(&f, 1, 0, known, 6);
        f.on.aggregator.budget.is_full = cases[i].is_full;
        f.on.aggregator.budget.entries_max = 16384; // some names were merged
        allocate_at(&f, 2, 0, known, 6);
        allocate_at(&f, 3, 0, fresh, 7);
        allocate_at(&f, 4, 0, fresh, 7);
        allocate_at(&f, 5, 4711, beyond, 2); // on a base whose name was merged
        CLEANUP(strbuf_release) struct strbuf text = {0};
        assert_int_equal(f.on.aggregator.totals.rows.rows.len, ARRAY_LEN(cases[i].rows));
        for (size_t row = 0; row < ARRAY_LEN(cases[i].rows); row++) {
            describe(&f.on.aggregator, row, &text);
            assert_string_equal(strbuf_text(&text), cases[i].rows[row]);
        }
        assert_int_equal(f.on.aggregator.totals.sums.allocations, 5);
        test_session_close(&f.on);
    }
}

// Nodes and rows stay below a bound with any input.
static void full_tables_stay_as_they_are(void **state)
{
    (void)state;
    enum {
        STACKS = 40000,
        FRAMES = 5,
        ADDED_MAX = 16384 + 2
    };
    static struct fixture f;
    open_fixture(&f);
    f.on.aggregator.budget.is_full = true;
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
        cmocka_unit_test(lanes_beyond_the_cap_are_noted),
        cmocka_unit_test(usual_words_have_a_cap_of_their_own),
        cmocka_unit_test(entries_are_limited),
        cmocka_unit_test(a_full_table_merges_new_stacks_and_no_known_ones),
        cmocka_unit_test(full_tables_stay_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
