// SPDX-License-Identifier: MIT
// row_changes: checkpoints of one run, written down by hand, whose rows change their places.
#include "profile/compare/row_changes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "profile/test_support/drawn_profile.h"

enum {
    ROWS_MAX = 4
};

// The state of a run: allocations by (node, thread). Bytes are ten times as many.
struct checkpoint {
    struct {
        uint32_t node;
        uint64_t allocations;
    } rows[ROWS_MAX];
    size_t count;
    uint64_t wanted[ROWS_MAX]; // changes since the previous checkpoint
};

static void assert_changes(struct row_sums *sums, const struct checkpoint *checkpoint)
{
    static struct rec_node nodes[] = {{REC_NONE, REC_NONE}, {0, 0}, {1, 1}, {1, 0}};
    static struct rec_frame frames[] = {{.module = REC_NONE, .offset = 0x100},
                                        {.module = REC_NONE, .offset = 0x200}};
    struct rec_row rows[ROWS_MAX] = {{0}};
    CLEANUP(drawn_profile_release) struct drawn_profile fixture = {0};
    CLEANUP(row_change_vec_release) struct row_change_vec changes = {0};
    for (size_t i = 0; i < checkpoint->count; i++) {
        rows[i] = (struct rec_row){.node = checkpoint->rows[i].node,
                                   .allocations = checkpoint->rows[i].allocations,
                                   .allocated_bytes = checkpoint->rows[i].allocations * 10};
    }
    drawn_profile_open("process row_changes\none 1 1 0 0 0 0 0 0 1\n", &fixture);
    struct profile profile = *fixture.profile; // borrows all but these tables
    profile.recording.nodes = nodes;
    profile.recording.node_count = ARRAY_LEN(nodes);
    profile.recording.frames = frames;
    profile.recording.frame_count = ARRAY_LEN(frames);
    profile.recording.rows = rows;
    profile.recording.row_count = checkpoint->count;
    assert_int_equal(row_sums_advance(sums, &profile, &changes), ERR_OK);
    assert_int_equal(changes.len, checkpoint->count);
    for (size_t i = 0; i < changes.len; i++) {
        assert_int_equal(changes.items[i].allocations, checkpoint->wanted[i]);
        assert_int_equal(changes.items[i].allocated_bytes, checkpoint->wanted[i] * 10);
    }
}

static void rows_are_found_again(void **state)
{
    static const struct checkpoint run[] = {
        {{{1, 5}, {2, 7}}, 2, {5, 7}},                       // the first: all of it
        {{{1, 5}, {2, 7}}, 2, {0, 0}},                       // nothing happened
        {{{2, 9}, {3, 4}, {1, 5}}, 3, {2, 4, 0}},            // other places, and a new stack
        {{{1, 6}, {1, 2}, {3, 4}, {2, 9}}, 4, {1, 2, 0, 0}}, // two rows of equal content
        {{{1, 8}, {3, 17}}, 2, {0, 4}},                      // stack 2 (9) was merged into 3
        {{{1, 8}, {3, 18}, {2, 1}}, 3, {0, 1, 1}},           // a merged stack occurs again
        {{{1, 1}}, 1, {0}}, // impossible in one run: never negative
    };
    CLEANUP(row_sums_release) struct row_sums sums = {0};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(run); i++) {
        assert_changes(&sums, &run[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_found_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
