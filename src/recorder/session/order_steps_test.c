// SPDX-License-Identifier: MIT
// Two threads that allocate and free at the same addresses, in all orders of their steps.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/minmax.h"
#include "recorder/session/test_lanes.h"

// The steps of two threads at one of three addresses: a allocates, c allocates much, f frees,
// b begins to reallocate, e ends that. The test tries all possible orders: a freed block
// is live, an allocated address is free.
struct small {
    const char *name;
    const char *threads[2];
};

struct small_run {
    uint64_t sizes[3]; // of the live blocks, 0: none
    uint32_t makers[3];
    uint64_t moved[2];         // address that the thread reallocates
    struct freed_note note[2]; // of that address
    uint32_t latest[2];        // address + 1 of the thread's latest event, if it was an allocation
    uint64_t live_bytes;
    uint64_t peak_bytes;
    uint64_t temporary;
    uint64_t frees[2]; // of the blocks that each thread allocated
};

// Remove a block from its address.
static void small_leave(struct small_run *run, uint32_t lane, uint32_t at)
{
    run->temporary += run->latest[lane] == at + 1 && run->makers[at] == lane;
    run->latest[lane] = 0;
    run->frees[run->makers[at]]++;
    run->live_bytes -= run->sizes[at];
    run->sizes[at] = 0;
}

static void small_come(struct small_run *run, uint32_t lane, uint32_t at, uint64_t size_bytes)
{
    run->sizes[at] = size_bytes;
    run->makers[at] = lane;
    run->latest[lane] = at + 1;
    run->live_bytes += run->sizes[at];
    run->peak_bytes = max_u64(run->peak_bytes, run->live_bytes);
}

// Then the allocator frees the block.
static void small_begin_move(struct lane_producer *p, struct small_run *run, uint32_t lane)
{
    assert_true(lane_enter(p));
    run->note[lane] = test_begin_move(p, run->moved[lane]);
}

static void
small_end_move(struct lane_producer *p, const struct small_run *run, uint32_t lane, uint32_t at)
{
    assert_true(lane_enter(p));
    assert_true(lane_reallocate(p, run->moved[lane], test_address(at), run->sizes[at], lane,
                                &run->note[lane]));
}

static bool small_step(struct test_lanes *f, struct small_run *run, uint32_t lane, const char *what)
{
    const uint32_t at = (uint32_t)(what[1] - '0');
    const bool is_leaving = what[0] == 'f' || what[0] == 'b';
    if ((run->sizes[at] != 0) != is_leaving) {
        return false;
    }
    struct lane_producer *p = f->lanes + lane;
    if (is_leaving) {
        small_leave(run, lane, at);
    } else {
        small_come(run, lane, at, what[0] == 'c' ? 20000 + lane : 10 + 7 * lane);
    }
    switch (what[0]) {
    case 'a':
    case 'c':
        assert_true(lane_enter(p));
        assert_true(lane_allocate(p, test_address(at), run->sizes[at], lane));
        break;
    case 'f':
        assert_true(lane_enter(p));
        assert_true(lane_free(p, test_address(at)));
        break;
    case 'b':
        run->moved[lane] = test_address(at);
        small_begin_move(p, run, lane);
        break;
    default:
        small_end_move(p, run, lane, at);
    }
    return true;
}

static void check_small(struct test_lanes *f, const struct small_run *run, uint64_t old_bytes)
{
    struct aggregator *aggregator = &f->on.aggregator;
    assert_int_equal(row_table_count(&aggregator->totals.rows), ERR_OK);
    assert_int_equal(aggregator->unknown_frees, 0);
    assert_int_equal(aggregator->totals.sums.live_bytes, run->live_bytes + old_bytes);
    assert_int_equal(aggregator->totals.sums.temporary, run->temporary);
    for (uint32_t i = 0; i < aggregator->totals.rows.rows.len; i++) {
        const struct rec_row *row = aggregator->totals.rows.rows.items + i;
        const uint32_t frame = aggregator->stacks.nodes.items[row->node].frame;
        const uint64_t slot = aggregator->stacks.frames.items[frame].offset - 0x1000;
        assert_int_equal(row->frees, slot < 2 ? run->frees[slot] : 0);
    }
    const uint64_t peak = run->peak_bytes + old_bytes;
    const uint64_t found = aggregator->totals.peak_bytes;
    assert_in_range(peak, found - aggregator->book_error_bytes,
                    found + aggregator->book_error_bytes);
}

// Run the steps. `order`: bit i selects the thread of the i-th step. Return whether that is
// possible. Before the steps whose bit is set in `passes` the recorder runs passes, and time
// advances.
static bool run_small(const struct small *small, uint32_t order, uint32_t passes)
{
    static struct test_lanes f;
    const uint64_t old_bytes = (uint64_t)2 << 20;
    struct small_run run = {0};
    const char *next[2] = {small->threads[0], small->threads[1]};
    test_lanes_open(&f, 2);
    assert_true(lane_allocate(f.lanes, test_address(100), old_bytes, 2));
    test_lanes_pass(&f, false);
    test_lanes_advance(&f, 1);
    bool is_possible = true;
    for (uint32_t i = 0; is_possible && (*next[0] != '\0' || *next[1] != '\0'); i++) {
        const uint32_t lane = order >> i & 1;
        // relieving a thread takes several
        for (uint32_t k = 0; k < 3 && (passes >> i & 1) != 0; k++) {
            test_lanes_advance(&f, 2);
            test_lanes_pass(&f, false);
        }
        is_possible = *next[lane] != '\0' && small_step(&f, &run, lane, next[lane]);
        next[lane] += 2;
    }
    if (is_possible) {
        for (uint32_t i = 0; i < 4; i++) {
            f.clock_ms += 5;
            test_lanes_pass(&f, i == 3);
        }
        check_small(&f, &run, old_bytes);
    }
    test_lanes_close(&f);
    return is_possible;
}

static void small_histories_are_right_in_all_orders(void **state)
{
    (void)state;
    static const struct small histories[] = {
        {"one frees the other's", {"a0", "f0"}},
        {"and has the address next", {"a0f0", "f0a0"}},
        {"and keeps it", {"a0", "f0a0"}},
        {"both free what is there", {"a0f0a0", "f0a0f0"}},
        {"two addresses", {"a0f1", "a1f0"}},
        {"two addresses, one used again", {"a0a1f0", "f0f1a0"}},
        {"each its own", {"a0f0", "a1f1"}},
        {"one moves its own", {"a0b0e1", "a0f0"}},
        {"and the other has the first address", {"a0b0e1", "c0f1"}},
        {"and the other frees it there", {"a0b0e1", "a0f1f0"}},
        {"and has its first address again", {"a0b0e1a0", "a0f0"}},
        {"one moves the other's", {"a0a0", "b0e1"}},
        {"both move what is there", {"a0b0e1", "b1e0f0"}},
    };
    uint32_t possible = 0;
    for (size_t i = 0; i < ARRAY_LEN(histories); i++) {
        print_message("%s\n", histories[i].name);
        const size_t steps =
            (strlen(histories[i].threads[0]) + strlen(histories[i].threads[1])) / 2;
        for (uint32_t order = 0; order < 1u << steps; order++) {
            if ((size_t)__builtin_popcount(order) * 2 != strlen(histories[i].threads[1])) {
                continue;
            }
            for (uint32_t passes = 0; passes < 1u << steps; passes++) {
                if (!run_small(histories + i, order, passes)) {
                    break; // impossible
                }
                possible++;
            }
        }
    }
    assert_true(possible > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_histories_are_right_in_all_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
