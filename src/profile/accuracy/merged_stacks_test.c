// SPDX-License-Identifier: MIT
// merged_stacks on a tree that is written down by hand.
#include "profile/accuracy/merged_stacks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "profile/test_support/drawn_profile.h"

enum {
    MARK = 2,
    TRUNCATED = 3,
};

//   main 1 ─ parse 2 ─ [..] 3 ─ new 4      (20 of 200 bytes)
//          │         └ item 5 ─ [..] 6     (3 of 500 bytes)
//          ├ [..] 7 ─ new 8                (7 of 10 bytes)
//          ├ [truncated] 9 ─ new 10        (1000: a deep stack, not a merged one)
//          └ other 11 ─ [..] 12            (4 of 900 bytes)
static void what_was_merged_is_added_up_with_its_callers(void **state)
{
    (void)state;
    static struct rec_node nodes[] = {
        {REC_NONE, REC_NONE},
        {0, 0},
        {1, 1},
        {2, MARK},
        {3, 0},
        {2, 0},
        {5, MARK},
        {1, MARK},
        {7, 0},
        {1, TRUNCATED},
        {9, 0},
        {1, 0},
        {11, MARK},
    };
    static struct rec_frame frames[] = {
        {.module = REC_NONE, .offset = 0x100},
        {.module = REC_NONE, .offset = 0x200},
        {.module = REC_NONE, .offset = REC_CUT_MERGED, .flags = REC_FRAME_CUT},
        {.module = REC_NONE, .flags = REC_FRAME_CUT},
    };
    static struct rec_row rows[] = {
        {.node = 4, .allocations = 15, .allocated_bytes = 150},
        {.thread = 1, .node = 4, .allocations = 5, .allocated_bytes = 50},
        {.node = 6, .allocations = 3, .allocated_bytes = 500},
        {.node = 8, .allocations = 7, .allocated_bytes = 10},
        {.node = 12, .allocations = 4, .allocated_bytes = 900},
        {.node = 10, .allocations = 1000, .allocated_bytes = 1000},
        {.node = 2, .allocations = 1000, .allocated_bytes = 1000},
    };
    CLEANUP(drawn_profile_release) struct drawn_profile fixture = {0};
    drawn_profile_open("process merged_stacks\none 1 1 0 0 0 0 0 0 1\n", &fixture);
    struct rec_counter note = {.name = fixture.recording.processes[0].executable, .value = 9};
    struct recording drawn = fixture.recording;
    drawn.counters = &note;
    drawn.nodes = nodes;
    drawn.node_count = ARRAY_LEN(nodes);
    drawn.frames = frames;
    drawn.frame_count = ARRAY_LEN(frames);
    drawn.rows = rows;
    drawn.row_count = ARRAY_LEN(rows);
    struct merged_stacks merged = {0};
    drawn.counter_count = 0; // nothing was merged
    assert_int_equal(merged_stacks_of(&drawn, &merged), ERR_OK);
    assert_int_equal(merged.times + merged.allocations, 0);
    drawn.counter_count = 1;
    assert_int_equal(merged_stacks_of(&drawn, &merged), ERR_OK);
    assert_int_equal(merged.times, 9);
    assert_int_equal(merged.allocations, 34);
    assert_int_equal(merged.allocated_bytes, 1610);
    assert_int_equal(merged.most_missing_allocations, 30); // main, parse, item
    assert_int_equal(merged.most_missing_bytes, 910);      // main, other
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_merged_is_added_up_with_its_callers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
