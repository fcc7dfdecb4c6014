// SPDX-License-Identifier: MIT
// What a nursery holds back and what it sends: the ring, the high-water mark, blocks of one
// address.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recorder/session/test_nursery.h"

enum {
    TWINS = 16 * TEST_STACKS,
};

// One tick of a thread whose blocks all die in it, two of a kind: pairs are worth holding back only
// while several threads record.
static void play_tick(struct test_nursery *f)
{
    struct lane_producer *p = f->lanes;
    test_nursery_advance(f, 1);
    for (uint32_t i = 0; i < 2 * TWINS; i++) {
        const uint32_t bucket = i % TWINS / TEST_STACKS;
        const uint64_t size_bytes = (uint64_t)(4 + bucket % 4) << (1 + bucket / 4);
        assert_true(nursery_begin(p));
        assert_true(nursery_allocate(p, test_address(i % 5), size_bytes, i % TEST_STACKS));
        if (i == TWINS) {
            test_nursery_check(f);
        }
        assert_true(nursery_free(p, test_address(i % 5)));
    }
    test_nursery_check(f);
    test_nursery_pass(f, false);
}

static void more_is_held_back_once_several_threads_record(void **state)
{
    (void)state;
    static struct test_nursery f;
    for (uint32_t lanes = 1; lanes <= 2; lanes++) {
        test_nursery_open(&f, lanes, 0);
        const struct nursery *n = &f.lanes[0].lane->nursery;
        // The following blocks set no high-water mark.
        assert_true(nursery_allocate(f.lanes, test_address(0), 1u << 30, 0));
        assert_true(nursery_free(f.lanes, test_address(0)));
        uint32_t ticks = 0;
        for (; ticks < 64; ticks++) {
            play_tick(&f);
        }
        assert_int_equal(n->is_ordered, lanes == 2);
        assert_int_equal(n->is_holding, lanes == 2);
        test_nursery_pass(&f, true);
        const struct running_sums *sums = &f.on.aggregator.totals.sums;
        assert_int_equal(sums->allocations, 1 + (uint64_t)ticks * 2 * TWINS);
        assert_int_equal(sums->temporary, sums->allocations);
        assert_int_equal(sums->live_bytes, 0);
        test_nursery_close(&f);
    }
}

// A thread that stopped holding tries again, and continues where it pays now.
static void holding_is_tried_again(void **state)
{
    (void)state;
    static struct test_nursery f;
    test_nursery_open(&f, 1, 0);
    struct lane_producer *p = f.lanes;
    const struct nursery *n = &p->lane->nursery;
    uint32_t ticks = 0;
    while (n->is_holding != 0) {
        play_tick(&f);
        assert_in_range(++ticks, 1, 100);
    }
    const uint32_t off_ticks = n->trade.off_ticks;
    for (ticks = 0; ticks < off_ticks + 100; ticks++) {
        assert_int_equal(n->is_holding, ticks >= off_ticks);
        test_nursery_advance(&f, 1);
        for (uint32_t i = 0; i < 300; i++) { // one kind only
            assert_true(nursery_begin(p));
            assert_true(nursery_allocate(p, test_address(0), 10, 0));
            assert_true(nursery_free(p, test_address(0)));
        }
        test_nursery_pass(&f, false);
    }
    test_nursery_close(&f);
}

// Open a session that no recorder reads, and send frees, at most so many, until the ring is full.
static uint32_t fill(struct test_nursery *f, uint32_t most, uint32_t is_holding)
{
    test_nursery_open(f, 1, 0);
    f->lanes->lane->nursery.is_holding = is_holding;
    atomic_store(&f->on.session.header->state, SESSION_ENDED);
    uint32_t sent = 0;
    while (sent < most && nursery_free(f->lanes, test_address(0))) {
        sent++;
    }
    return sent;
}

// The ring is full and no recorder reads it: each kind of event reports that it was not sent.
static void what_cannot_be_sent_is_reported(void **state)
{
    (void)state;
    static struct test_nursery f;
    for (uint32_t is_holding = 0; is_holding < 2; is_holding++) {
        const uint32_t sent = fill(&f, LANE_RING_BYTES_MAX, is_holding);
        struct lane_producer *p = f.lanes;
        const uint64_t large_bytes = WIRE_SIZE_MAX + 1;
        assert_in_range(sent, 1000, LANE_RING_BYTES_MAX - 1);
        assert_false(nursery_allocate(p, test_address(1), large_bytes, 0));
        assert_false(nursery_allocate_sampled(p, test_address(2), 1u << 20, 0, 3));
        assert_false(nursery_free(p, test_address(3)));
        assert_false(nursery_reallocate(p, test_address(4), test_address(5), large_bytes, 0,
                                        (struct freed_note){0}));
        if (is_holding == 0) {
            assert_false(nursery_allocate(p, test_address(6), 10, 0));
            assert_false(nursery_reallocate(p, test_address(7), test_address(8), 10, 0,
                                            (struct freed_note){0}));
        }
        test_nursery_close(&f);
    }
}

// A high-water mark with several freed blocks needs more room than the ring has left. An event that
// must come after the mark would fit, and is not sent.
static void nothing_overtakes_a_high_water(void **state)
{
    (void)state;
    enum {
        HELD = 6
    };
    static struct test_nursery f;
    const uint32_t room = fill(&f, LANE_RING_BYTES_MAX, 1);
    test_nursery_close(&f);
    for (uint32_t left = 1; left <= HELD; left++) {
        assert_int_equal(fill(&f, room - left, 1), room - left);
        for (uint32_t i = 1; i <= HELD; i++) {
            assert_true(nursery_allocate(f.lanes, test_address(i), 100, 0));
        }
        for (uint32_t i = 1; i <= HELD; i++) {
            assert_true(nursery_free(f.lanes, test_address(i)));
        }
        assert_int_equal(f.lanes->lane->nursery.freed_count, HELD);
        assert_false(nursery_allocate(f.lanes, test_address(HELD + 1), WIRE_SIZE_MAX + 1, 0));
        assert_false(nursery_free(f.lanes, test_address(0)));
        test_nursery_close(&f);
    }
}

// Large blocks are sent at once. A freed one leaves the thread's sum: with any number of blocks,
// the high-water mark is one block.
static void a_freed_block_that_was_sent_leaves_the_sum(void **state)
{
    (void)state;
    static struct test_nursery f;
    struct lane_producer *p = test_nursery_open_one(&f);
    const struct nursery *n = &p->lane->nursery;
    const uint64_t size_bytes = (uint64_t)64 << 20;
    for (uint32_t i = 0; i < 100; i++) {
        assert_true(nursery_allocate(p, test_address(i % 7), size_bytes, 0));
        assert_int_equal(n->ceiling_bytes - n->room_bytes, size_bytes);
        assert_true(nursery_free(p, test_address(i % 7)));
        assert_int_equal(n->ceiling_bytes - n->room_bytes, 0);
        assert_int_equal(n->ceiling_bytes, size_bytes);
    }
    test_nursery_pass(&f, true);
    assert_int_equal(f.on.aggregator.totals.peak_bytes, size_bytes);
    test_nursery_close(&f);
}

enum {
    MARKS = 1030, // two each are more than there are stamps
};

// One tick in which the heap only grows: each temporary block is part of a new high-water mark.
static void there_may_be_more_high_water_than_stamps(void **state)
{
    (void)state;
    static struct test_nursery f;
    struct lane_producer *p = test_nursery_open_one(&f);
    for (uint32_t i = 0; i < MARKS; i++) {
        assert_true(nursery_allocate(p, test_address(i), 100, 0));
        assert_true(nursery_allocate(p, test_address(MARKS), 50, 1));
        assert_true(nursery_free(p, test_address(MARKS)));
        if (i % 100 == 0) {
            test_nursery_pass(&f, false); // or the ring would be full
        }
    }
    assert_true(p->pos < (uint64_t)MARKS * 3 * sizeof(uint64_t)); // the pairs were counted
    test_nursery_pass(&f, true);
    struct heap_totals *totals = &f.on.aggregator.totals;
    assert_int_equal(totals->sums.allocations, 2 * MARKS);
    assert_int_equal(totals->sums.frees, MARKS);
    assert_int_equal(totals->peak_bytes, 100 * MARKS + 50);
    assert_int_equal(totals->peak_blocks, MARKS + 1);
    assert_int_equal(totals->rows.rows.len, 2);
    assert_int_equal(row_table_count(&totals->rows), ERR_OK);
    for (uint32_t i = 0; i < 2; i++) {
        row_table_commit_peak(&totals->rows, i, true, 0);
        const struct rec_row *row = totals->rows.rows.items + i;
        const bool is_temporary = row->temporary > 0;
        assert_int_equal(row->temporary, is_temporary ? MARKS : 0);
        assert_int_equal(row->peak_blocks, is_temporary ? 1 : MARKS);
        assert_int_equal(row->peak_bytes, is_temporary ? 50 : 100 * MARKS);
    }
    test_nursery_close(&f);
}

// Return the next address of `wanted`'s place.
static uint64_t next_rival(struct lane_header *lane, uint64_t wanted, uint64_t address)
{
    do {
        address += 16;
    } while (nursery_block_of(lane, address) != nursery_block_of(lane, wanted));
    return address;
}

// A thread with one block of 100 bytes, whose heap had one of 50 in addition.
static struct lane_producer *leave_a_high_water(struct test_nursery *f)
{
    struct lane_producer *p = test_nursery_open_one(f);
    assert_true(nursery_allocate(p, test_address(0), 100, 0));
    assert_true(nursery_allocate(p, test_address(1), 50, 1));
    assert_true(nursery_free(p, test_address(1)));
    return p;
}

// A thread whose signal handler left by longjmp goes on from any step of a change
// (nursery_layout.h). The block of 100 bytes was in it.
static void an_interrupted_change_is_completed_or_undone(void **state)
{
    (void)state;
    static const struct {
        enum nursery_block_state block; // of the block of 100 bytes
        int64_t mark_behind;            // the position that a sending would have reached, from ours
        bool is_leaving;                // the high-water mark
        bool is_done;                   // so its event is known already
    } cases[] = {
        {NURSERY_HELD, 0, false, false},       {NURSERY_HELD, 0, true, false},
        {NURSERY_COALESCING, 0, false, false}, {NURSERY_COALESCING, 0, true, false},
        {NURSERY_COALESCING, 1, false, true}, // the sums are others than the mark
        {NURSERY_SENDING, 1, false, false},    {NURSERY_SENDING, 0, false, true},
        {NURSERY_SENDING, -1, false, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        static struct test_nursery f;
        struct lane_producer *p = leave_a_high_water(&f);
        struct nursery *n = &p->lane->nursery;
        struct nursery_block *block = nursery_block_of(p->lane, test_address(0));
        assert_int_equal(n->freed_count, 1);
        block->place = nursery_place(test_address(0), cases[i].block);
        const struct nursery_counter *counter =
            nursery_counter_at(p->lane, nursery_counter_key(block->kind));
        const uint64_t before = cases[i].block == NURSERY_SENDING ? p->pos : counter->sums;
        n->mark = before + (uint64_t)cases[i].mark_behind;
        if (cases[i].is_leaving) {
            n->leaving = test_address(0) | (uint64_t)n->freed_count << NURSERY_LEAVING_SHIFT;
            lane_nursery_tables(p->lane)->freed[n->freed_count++] = 0;
        }
        assert_true(nursery_recover(p));
        test_nursery_check(&f);
        assert_int_equal(nursery_relaxed(&n->held_bytes), 0);
        test_nursery_pass(&f, true);
        const struct heap_totals *totals = &f.on.aggregator.totals;
        assert_int_equal(totals->sums.allocations, cases[i].is_done ? 1 : 2);
        assert_int_equal(totals->sums.frees, 1);
        assert_int_equal(totals->sums.live_bytes, cases[i].is_done ? 0 : 100);
        assert_int_equal(totals->peak_bytes, cases[i].is_done ? 50 : 150);
        assert_int_equal(totals->peak_blocks, cases[i].is_done ? 1 : 2);
        test_nursery_close(&f);
    }
}

// A later block that has to make room is not sent before the high-water mark.
static void what_is_displaced_is_no_part_of_the_high_water(void **state)
{
    (void)state;
    static struct test_nursery f;
    struct lane_producer *p = leave_a_high_water(&f);
    const uint64_t wanted = 0x600000000000;
    const uint64_t rival = next_rival(p->lane, wanted, wanted);
    assert_true(nursery_allocate(p, wanted, 5, 2));
    assert_true(nursery_allocate(p, rival, 5, 2));
    assert_int_equal(nursery_block_of(p->lane, wanted)->place, rival);
    test_nursery_pass(&f, true);
    assert_int_equal(f.on.aggregator.totals.peak_bytes, 150);
    assert_int_equal(f.on.aggregator.totals.peak_blocks, 2);
    test_nursery_close(&f);
}

// The thread's latest block may have the address of an earlier block that another thread has freed.
static void two_blocks_of_one_address_are_both_sent(void **state)
{
    (void)state;
    static struct test_nursery f;
    test_nursery_open(&f, 2, SESSION_ALWAYS_HOLD);
    struct lane_producer *p = f.lanes;
    assert_true(nursery_allocate(p, test_address(0), 1000, 0)); // the others set no high-water mark
    assert_true(nursery_free(p, test_address(0)));
    assert_true(nursery_allocate(p, test_address(1), 20, 1));
    assert_true(nursery_free(f.lanes + 1, test_address(1)));
    assert_true(nursery_allocate(p, test_address(1), 30, 2));
    for (uint32_t i = 0; i < 4; i++) {
        test_nursery_advance(&f, 5);
        assert_true(nursery_begin(p));
        test_nursery_pass(&f, false);
    }
    assert_int_equal(f.on.aggregator.totals.sums.allocations, 3);
    assert_int_equal(f.on.aggregator.totals.sums.frees, 2);
    assert_int_equal(f.on.aggregator.totals.sums.live_bytes, 30);
    test_nursery_close(&f);
}

// A relieved thread's later events do not concern the high-water mark that was taken from it.
static void a_relieved_thread_stands_on_no_high_water(void **state)
{
    (void)state;
    static struct test_nursery f;
    struct lane_producer *p = leave_a_high_water(&f);
    const uint64_t clock_ms = f.clock_ms;
    for (uint32_t i = 0; i < 4; i++) {
        f.clock_ms += 5;
        test_nursery_pass(&f, false);
    }
    assert_int_equal(p->lane->nursery.hold_count, 0);
    assert_int_equal(f.on.aggregator.totals.peak_bytes, 150);
    f.clock_ms = clock_ms; // to the thread it is still the same tick
    for (uint32_t i = 2; i < 4; i++) {
        assert_true(nursery_begin(p));
        assert_true(nursery_allocate(p, test_address(i), 40, 2));
        assert_true(nursery_free(p, test_address(i)));
    }
    assert_int_equal(p->lane->nursery.hold_count, 2);
    test_nursery_pass(&f, true);
    assert_int_equal(f.on.aggregator.totals.peak_bytes, 150);
    assert_int_equal(f.on.aggregator.totals.sums.allocations, 4);
    test_nursery_close(&f);
}

// The recorder takes what a thread holds, but counts it only after an event that has not been
// published. Meanwhile the thread holds more, and ends without sending it.
static void what_is_held_while_taken_blocks_wait_is_counted(void **state)
{
    (void)state;
    for (int is_last = 0; is_last < 2; is_last++) {
        static struct test_nursery f;
        struct lane_producer *p = leave_a_high_water(&f);
        const uint64_t clock_ms = f.clock_ms;
        _Atomic uint64_t *pending = &p->lane->pending_stamps[LANE_PENDING_REALLOC];
        _Atomic uint32_t *order = &f.on.session.header->order;
        const uint32_t own = atomic_exchange(order, SESSION_ORDER_SEVERAL);
        atomic_store(pending, stamp_now(f.on.session.header));
        for (uint32_t i = 0; i < 4; i++) {
            f.clock_ms += 5;
            test_nursery_pass(&f, false);
        }
        atomic_store(order, own); // the thread has not seen the others yet
        assert_int_equal(p->lane->nursery.hold_count, 0);
        assert_int_equal(f.on.aggregator.totals.sums.allocations, 0);
        f.clock_ms = clock_ms; // to the thread it is still the same tick
        assert_true(nursery_begin(p));
        assert_true(nursery_allocate(p, test_address(2), 40, 2));
        assert_true(p->lane->nursery.hold_count > 0);
        f.on.drain.lanes[0]->is_done = true; // the thread was killed
        if (is_last == 0) {
            atomic_store(pending, 0);
        }
        for (uint32_t i = 0; i < 3 && (is_last == 0 || i == 0); i++) {
            test_nursery_pass(&f, is_last != 0);
        }
        assert_int_equal(f.on.aggregator.totals.sums.allocations, 3);
        assert_int_equal(f.on.aggregator.totals.sums.frees, 1);
        test_nursery_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_is_held_back_once_several_threads_record),
        cmocka_unit_test(holding_is_tried_again),
        cmocka_unit_test(what_cannot_be_sent_is_reported),
        cmocka_unit_test(nothing_overtakes_a_high_water),
        cmocka_unit_test(a_freed_block_that_was_sent_leaves_the_sum),
        cmocka_unit_test(there_may_be_more_high_water_than_stamps),
        cmocka_unit_test(an_interrupted_change_is_completed_or_undone),
        cmocka_unit_test(what_is_displaced_is_no_part_of_the_high_water),
        cmocka_unit_test(two_blocks_of_one_address_are_both_sent),
        cmocka_unit_test(a_relieved_thread_stands_on_no_high_water),
        cmocka_unit_test(what_is_held_while_taken_blocks_wait_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
