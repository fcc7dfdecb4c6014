// SPDX-License-Identifier: MIT
// The nursery from end to end: a drain reads what random threads write; the figures must agree.
#include "target/producer/nursery/nursery.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/test_support/random_numbers.h"
#include "recorder/ingest/drain.h"
#include "recorder/ingest/test_session.h"
#include "target/producer/nursery/test_holding.h"
#include "target/producer/session_join.h"

enum {
    LANES_MAX = 4,
    STACKS = 6, // of one lane
    ROWS_MAX = LANES_MAX * STACKS,
    ADDRESSES = 2000,
    EVENTS = 30000,
    TICK_EVENTS = 400, // on average
    TWINS = 16 * STACKS,
    BUCKETS = REC_BUCKET_COUNT,
};

// The streams differ in which blocks they free and how large the blocks are.
struct taste {
    const char *name;
    uint32_t lanes;
    uint32_t live_max; // blocks
    uint32_t size_max;
    uint32_t latest_of_8; // how often a free takes the latest block
    uint32_t foreign;     // in 64: by another lane than its own
    uint32_t grow;        // in 8: reallocations among events that are no frees
    uint32_t recent;      // frees take one of so many of the latest; 0: any
    bool has_giants;      // some are too large to be held
};

static const struct taste tastes[] = {
    {"queue", 1, 16, 60, 0, 0, 0, 0, false},
    {"temporaries below a plateau", 1, 100, 500, 6, 0, 0, 0, true},
    {"churn", 1, 500, 270, 0, 0, 0, 0, false},
    {"growth by realloc", 1, 40, 3000, 2, 0, 4, 0, false},
    {"wide and restless", 1, 600, 100000, 3, 0, 1, 0, true},
    {"a heap that grows under temporaries", 1, 1900, 400, 2, 0, 0, 12, false},
    {"a heap that grows and moves", 1, 1900, 400, 1, 0, 3, 150, true},
    {"two that keep to themselves", 2, 100, 300, 3, 0, 1, 0, false},
    {"two that are nearly idle", 2, 6, 300, 5, 0, 0, 0, false},
    {"two that grow", 2, 1900, 300, 2, 0, 1, 20, false},
    {"four that free each other's", 4, 300, 300, 2, 30, 1, 0, false},
};

struct block {
    uint64_t size_bytes; // 0: not live
    uint32_t lane;
};

struct stream {
    const struct taste *taste;
    uint64_t random;
    struct block blocks[ADDRESSES];
    uint32_t live[ADDRESSES];
    uint32_t live_count;
    uint64_t live_bytes;
    uint64_t peak_bytes;
    uint64_t allocations;
    uint64_t frees;
    uint64_t allocated_bytes;
    uint64_t temporary;
    uint32_t latest[LANES_MAX]; // address index + 1 of the allocation by the lane's latest event
};

struct fixture {
    struct test_session on;
    struct lane_producer lanes[LANES_MAX];
    uint32_t lane_count;
    bool is_stubborn; // lanes never give up holding
    struct freed_table freed;
    uint64_t clock_ms;
    uint64_t monotonic_ns;
};

static uint64_t address_of(uint32_t index)
{
    return 0x7f0000001010 + (uint64_t)index * 48;
}

static void open_lane(struct fixture *f, uint32_t process, struct lane_producer *p)
{
    test_session_add_lane(&f->on, process, p);
    p->freed = &f->freed;
    nursery_init(p);
    test_hold_for(p->lane, f->is_stubborn ? TEST_HOLDS_ALWAYS : 0);
    assert_true(nursery_begin(p));
    test_session_define_stacks(p, STACKS);
}

static void open_fixture(struct fixture *f, uint32_t lane_count, uint32_t flags, bool is_stubborn)
{
    *f = (struct fixture){.clock_ms = 1, .lane_count = lane_count, .is_stubborn = is_stubborn};
    test_session_open(&f->on, flags);
    const uint32_t process = test_session_add_process(&f->on);
    for (uint32_t i = 0; i < lane_count; i++) {
        open_lane(f, process, f->lanes + i);
    }
}

static void close_fixture(struct fixture *f)
{
    test_session_close(&f->on);
}

static void pass(struct fixture *f, bool is_last)
{
    bool was_busy;
    drain_find_dead(&f->on.drain);
    f->monotonic_ns += 700000;
    drain_note_time(&f->on.drain, f->clock_ms, f->monotonic_ns);
    assert_int_equal(drain_pass(&f->on.drain, f->clock_ms, is_last, &was_busy), ERR_OK);
}

// Return the index of a live block, or ADDRESSES if the next event is no free.
static uint32_t choose_victim(struct stream *s, uint32_t lane)
{
    const uint32_t latest = s->latest[lane];
    if (latest != 0 && s->blocks[latest - 1].size_bytes != 0 &&
        next_random(&s->random) % 8 < s->taste->latest_of_8) {
        return latest - 1;
    }
    const bool is_full = s->live_count >= s->taste->live_max;
    if (s->live_count == 0 || (!is_full && next_random(&s->random) % 2 == 0)) {
        return ADDRESSES;
    }
    const uint32_t recent = s->taste->recent;
    const uint32_t among = recent != 0 && recent < s->live_count ? recent : s->live_count;
    return s->live[s->live_count - 1 - next_random(&s->random) % among];
}

static void forget(struct stream *s, uint32_t lane, uint32_t index)
{
    s->temporary += s->latest[lane] == index + 1 && s->blocks[index].lane == lane;
    s->latest[lane] = 0;
    s->frees++;
    s->live_bytes -= s->blocks[index].size_bytes;
    s->blocks[index].size_bytes = 0;
    for (uint32_t i = 0; i < s->live_count; i++) {
        if (s->live[i] == index) {
            memmove(s->live + i, s->live + i + 1, (s->live_count - i - 1) * sizeof(s->live[0]));
            s->live_count--;
            return;
        }
    }
}

static void remember(struct stream *s, uint32_t lane, uint32_t index, uint64_t size_bytes)
{
    s->blocks[index] = (struct block){.size_bytes = size_bytes, .lane = lane};
    s->live[s->live_count++] = index;
    s->latest[lane] = index + 1;
    s->allocations++;
    s->allocated_bytes += size_bytes;
    s->live_bytes += size_bytes;
    s->peak_bytes = s->live_bytes > s->peak_bytes ? s->live_bytes : s->peak_bytes;
}

static uint32_t unused_index(struct stream *s)
{
    uint32_t index;
    do {
        index = (uint32_t)(next_random(&s->random) % ADDRESSES);
    } while (s->blocks[index].size_bytes != 0);
    return index;
}

static uint64_t random_size(struct stream *s)
{
    const uint64_t r = next_random(&s->random);
    if (s->taste->has_giants && r % 997 == 0) {
        return 3 << 20; // never held
    }
    return 1 + (r >> 10) % s->taste->size_max;
}

static void step(struct fixture *f, struct stream *s)
{
    uint32_t lane = (uint32_t)(next_random(&s->random) % f->lane_count);
    const uint32_t slot = (uint32_t)(next_random(&s->random) % STACKS);
    const uint32_t victim = choose_victim(s, lane);
    if (victim < ADDRESSES && next_random(&s->random) % 64 >= s->taste->foreign) {
        lane = s->blocks[victim].lane;
    }
    struct lane_producer *p = f->lanes + lane;
    assert_true(nursery_begin(p));
    if (victim < ADDRESSES && next_random(&s->random) % 8 >= s->taste->grow) {
        assert_true(nursery_free(p, address_of(victim)));
        forget(s, lane, victim);
        return;
    }
    const uint64_t size_bytes = random_size(s);
    if (victim < ADDRESSES) {
        // As a hook does it, before the allocator frees it.
        const uint64_t stamp = p->is_ordered ? stamp_now(p->session) : 0;
        const struct freed_note freed = {
            .stamp = stamp,
            .latest = stamp != 0 ? freed_table_note(p->freed, address_of(victim), stamp) : 0,
        };
        forget(s, lane, victim);
        const bool stays = next_random(&s->random) % 2 == 0;
        const uint32_t to = stays ? victim : unused_index(s);
        assert_true(
            nursery_reallocate(p, address_of(victim), address_of(to), size_bytes, slot, freed));
        remember(s, lane, to, size_bytes);
        return;
    }
    const uint32_t index = unused_index(s);
    assert_true(nursery_allocate(p, address_of(index), size_bytes, slot));
    remember(s, lane, index, size_bytes);
}

static void run_stream(struct fixture *f, struct stream *s)
{
    uint64_t schedule = s->random ^ 0x5555; // its own, so that all sessions see the same events
    uint64_t pause = 0;
    for (uint32_t i = 0; i < EVENTS; i++) {
        if (next_random(&schedule) % TICK_EVENTS == 0) {
            f->clock_ms += next_random(&schedule) % 8 == 0 ? 5 : 1;
            atomic_store(&f->on.session.header->clock_ms, f->clock_ms);
            pause = next_random(&schedule) % 4; // how many passes before the threads continue
        }
        for (; pause > 0; pause--) {
            pass(f, false);
        }
        if (next_random(&schedule) % 100 == 0) {
            pass(f, false);
        }
        step(f, s);
    }
    pass(f, true);
    aggregator_settle(&f->on.aggregator, f->on.aggregator.processes.items[0], UINT64_MAX);
}

static void compare_row(const struct rec_row *a, const struct rec_row *b)
{
    assert_int_equal(a->allocations, b->allocations);
    assert_int_equal(a->allocated_bytes, b->allocated_bytes);
    assert_int_equal(a->frees, b->frees);
    assert_int_equal(a->freed_bytes, b->freed_bytes);
    assert_int_equal(a->temporary, b->temporary);
    assert_int_equal(a->temporary_bytes, b->temporary_bytes);
    assert_int_equal(a->peak_bytes, b->peak_bytes);
    assert_int_equal(a->peak_blocks, b->peak_blocks);
}

static void compare_buckets(const struct bucket_set *a,
                            const struct bucket_set *b,
                            uint64_t count,
                            uint64_t bytes)
{
    struct rec_bucket_vec left = {0};
    struct rec_bucket_vec right = {0};
    assert_int_equal(bucket_set_collect(a, 0, count, bytes, &left), ERR_OK);
    assert_int_equal(bucket_set_collect(b, 0, count, bytes, &right), ERR_OK);
    assert_int_equal(left.len, right.len);
    for (size_t i = 0; i < left.len; i++) {
        assert_memory_equal(left.items + i, right.items + i, sizeof(left.items[i]));
    }
    rec_bucket_vec_release(&left);
    rec_bucket_vec_release(&right);
}

// Return a stack's row; rows are in the order of first events.
static uint32_t row_of_node(struct row_table *rows, uint32_t node)
{
    uint32_t found = 0;
    while (found < rows->rows.len && rows->rows.items[found].node != node) {
        found++;
    }
    assert_true(found < rows->rows.len);
    row_table_fold(rows, found, true, 0);
    return found;
}

// With one thread, all totals are as if every event had been sent.
static void compare_totals(struct heap_totals *held, struct heap_totals *sent)
{
    assert_int_equal(held->peak_bytes, sent->peak_bytes);
    assert_int_equal(held->peak_blocks, sent->peak_blocks);
    assert_int_equal(held->peak_time_ms, sent->peak_time_ms);
    assert_int_equal(held->rows.rows.len, sent->rows.rows.len);
    assert_int_equal(row_table_count(&held->rows), ERR_OK);
    assert_int_equal(row_table_count(&sent->rows), ERR_OK);
    for (uint32_t i = 0; i < held->rows.rows.len; i++) {
        row_table_fold(&held->rows, i, true, 0);
        const struct rec_row *a = held->rows.rows.items + i;
        const uint32_t k = row_of_node(&sent->rows, held->rows.rows.items[i].node);
        const struct rec_row *b = sent->rows.rows.items + k;
        const struct row_extra *x = held->rows.extras.items + i;
        const struct row_extra *y = sent->rows.extras.items + k;
        compare_row(a, b);
        compare_buckets(&x->sizes, &y->sizes, a->allocations, a->allocated_bytes);
        compare_buckets(&x->lifetimes, &y->lifetimes, a->frees, a->freed_bytes);
    }
}

static void check_against_truth(const struct fixture *f, const struct stream *s)
{
    const struct heap_totals *totals = &f->on.aggregator.totals;
    const uint64_t above = peak_bound_above(&f->on.aggregator.bound, totals->peak_bytes);
    assert_int_equal(f->on.drain.corrupt_lanes, 0);
    assert_int_equal(f->on.aggregator.unknown_frees, 0);
    assert_int_equal(totals->sums.allocations, s->allocations);
    assert_int_equal(totals->sums.allocated_bytes, s->allocated_bytes);
    assert_int_equal(totals->sums.frees, s->frees);
    assert_int_equal(totals->sums.live_bytes, s->live_bytes);
    assert_int_equal(totals->sums.temporary, s->temporary);
    assert_in_range(s->peak_bytes, totals->peak_bytes, totals->peak_bytes + above);
    assert_int_equal(peak_bound_below(&f->on.aggregator.bound, totals->peak_bytes), 0);
    assert_true(f->lane_count > 1 || above == 0);
}

static void run_taste(const struct taste *taste, uint64_t seed)
{
    static struct fixture held;
    static struct fixture sent;
    static struct stream streams[2];
    open_fixture(&held, taste->lanes, SESSION_FOLLOW_CHILDREN, seed % 2 == 0);
    open_fixture(&sent, taste->lanes, SESSION_FOLLOW_CHILDREN | SESSION_NO_NURSERY, false);
    atomic_store(&held.on.session.header->is_pressed, seed % 3 == 0);
    for (uint32_t i = 0; i < 2; i++) {
        streams[i] = (struct stream){.taste = taste, .random = seed * 0x9e3779b97f4a7c15 + 1};
        run_stream(i == 0 ? &held : &sent, streams + i);
    }
    for (uint32_t i = 0; i < taste->lanes; i++) {
        assert_int_equal(sent.lanes[i].lane->nursery.is_holding, 0);
    }
    check_against_truth(&held, streams);
    check_against_truth(&sent, streams + 1);
    if (taste->lanes == 1) {
        compare_totals(&held.on.aggregator.totals, &sent.on.aggregator.totals);
    }
    close_fixture(&held);
    close_fixture(&sent);
}

static void what_is_held_back_makes_no_difference(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(tastes); i++) {
        for (uint64_t seed = 1; seed <= 12; seed++) {
            print_message("%s, seed %d\n", tastes[i].name, (int)seed);
            run_taste(tastes + i, seed);
        }
    }
}

// One tick of a thread whose blocks all die in it, two of a kind: pairs are worth holding back only
// while the recorder is under pressure.
static void play_tick(struct fixture *f)
{
    struct lane_producer *p = f->lanes;
    f->clock_ms++;
    atomic_store(&f->on.session.header->clock_ms, f->clock_ms);
    for (uint32_t i = 0; i < 2 * TWINS; i++) {
        const uint32_t bucket = i % TWINS / STACKS;
        const uint64_t size_bytes = (uint64_t)(4 + bucket % 4) << (1 + bucket / 4);
        assert_true(nursery_begin(p));
        assert_true(nursery_allocate(p, address_of(i % 5), size_bytes, i % STACKS));
        assert_true(nursery_free(p, address_of(i % 5)));
    }
    pass(f, false);
}

static void more_is_held_back_while_the_recorder_is_pressed(void **state)
{
    (void)state;
    static struct fixture f;
    open_fixture(&f, 1, SESSION_FOLLOW_CHILDREN, false);
    const struct nursery *n = &f.lanes[0].lane->nursery;
    // The following blocks set no high-water mark.
    assert_true(nursery_allocate(f.lanes, address_of(0), 1u << 30, 0));
    assert_true(nursery_free(f.lanes, address_of(0)));
    uint32_t ticks = 0;
    for (; ticks < 32; ticks++) {
        play_tick(&f);
    }
    assert_int_equal(n->is_holding, 0);
    atomic_store(&f.on.session.header->is_pressed, 1);
    for (; ticks < 300; ticks++) {
        play_tick(&f);
        assert_int_equal(n->is_holding, 1); // though the pause is not over
    }
    atomic_store(&f.on.session.header->is_pressed, 0);
    for (; ticks < 332; ticks++) {
        play_tick(&f);
    }
    assert_int_equal(n->is_holding, 0);
    pass(&f, true);
    const struct running_sums *sums = &f.on.aggregator.totals.sums;
    assert_int_equal(sums->allocations, 1 + (uint64_t)ticks * 2 * TWINS);
    assert_int_equal(sums->temporary, sums->allocations);
    assert_int_equal(sums->live_bytes, 0);
    close_fixture(&f);
}

// Open a session with one lane, in a tick in which it may hold.
static struct lane_producer *open_one_lane(struct fixture *f)
{
    open_fixture(f, 1, SESSION_FOLLOW_CHILDREN, true);
    f->clock_ms += 4; // in the first tick sizes are learnt
    atomic_store(&f->on.session.header->clock_ms, f->clock_ms);
    assert_true(nursery_begin(f->lanes));
    return f->lanes;
}

// The ring is full and no recorder reads it: each kind of event reports that it was not sent.
static void what_cannot_be_sent_is_told(void **state)
{
    (void)state;
    static struct fixture f;
    for (uint32_t is_holding = 0; is_holding < 2; is_holding++) {
        open_fixture(&f, 1, SESSION_FOLLOW_CHILDREN, false);
        struct lane_producer *p = f.lanes;
        p->lane->nursery.is_holding = is_holding;
        atomic_store(&f.on.session.header->state, SESSION_ENDED);
        const uint64_t large_bytes = WIRE_SIZE_MAX + 1;
        uint32_t sent = 0;
        while (sent < LANE_RING_BYTES_MAX && nursery_free(p, address_of(0))) {
            sent++;
        }
        assert_in_range(sent, 1000, LANE_RING_BYTES_MAX - 1);
        assert_false(nursery_allocate(p, address_of(1), large_bytes, 0));
        assert_false(nursery_allocate_sampled(p, address_of(2), 1u << 20, 0, 3));
        assert_false(nursery_free(p, address_of(3)));
        assert_false(nursery_reallocate(p, address_of(4), address_of(5), large_bytes, 0,
                                        (struct freed_note){0}));
        if (is_holding == 0) {
            assert_false(nursery_allocate(p, address_of(6), 10, 0));
            assert_false(
                nursery_reallocate(p, address_of(7), address_of(8), 10, 0, (struct freed_note){0}));
        }
        close_fixture(&f);
    }
}

// Large blocks are sent at once. A freed one leaves the thread's sum: with any number of blocks,
// the high-water mark is one block.
static void a_freed_block_that_was_sent_leaves_the_sum(void **state)
{
    (void)state;
    static struct fixture f;
    struct lane_producer *p = open_one_lane(&f);
    const struct nursery *n = &p->lane->nursery;
    const uint64_t size_bytes = (uint64_t)64 << 20;
    for (uint32_t i = 0; i < 100; i++) {
        assert_true(nursery_allocate(p, address_of(i % 7), size_bytes, 0));
        assert_int_equal(n->ceiling_bytes - n->room_bytes, size_bytes);
        assert_true(nursery_free(p, address_of(i % 7)));
        assert_int_equal(n->ceiling_bytes - n->room_bytes, 0);
        assert_int_equal(n->ceiling_bytes, size_bytes);
    }
    pass(&f, true);
    assert_int_equal(f.on.aggregator.totals.peak_bytes, size_bytes);
    close_fixture(&f);
}

enum {
    MARKS = 1030, // two each are more than there are stamps
};

// One tick in which the heap only grows: each temporary block is part of a new high-water mark.
static void there_may_be_more_high_water_than_stamps(void **state)
{
    (void)state;
    static struct fixture f;
    struct lane_producer *p = open_one_lane(&f);
    for (uint32_t i = 0; i < MARKS; i++) {
        assert_true(nursery_allocate(p, address_of(i), 100, 0));
        assert_true(nursery_allocate(p, address_of(MARKS), 50, 1));
        assert_true(nursery_free(p, address_of(MARKS)));
        if (i % 100 == 0) {
            pass(&f, false); // or the ring would be full
        }
    }
    assert_true(p->pos < (uint64_t)MARKS * 3 * sizeof(uint64_t)); // the pairs were counted
    pass(&f, true);
    struct heap_totals *totals = &f.on.aggregator.totals;
    assert_int_equal(totals->sums.allocations, 2 * MARKS);
    assert_int_equal(totals->sums.frees, MARKS);
    assert_int_equal(totals->peak_bytes, 100 * MARKS + 50);
    assert_int_equal(totals->peak_blocks, MARKS + 1);
    assert_int_equal(totals->rows.rows.len, 2);
    assert_int_equal(row_table_count(&totals->rows), ERR_OK);
    for (uint32_t i = 0; i < 2; i++) {
        row_table_fold(&totals->rows, i, true, 0);
        const struct rec_row *row = totals->rows.rows.items + i;
        const bool is_temporary = row->temporary > 0;
        assert_int_equal(row->temporary, is_temporary ? MARKS : 0);
        assert_int_equal(row->peak_blocks, is_temporary ? 1 : MARKS);
        assert_int_equal(row->peak_bytes, is_temporary ? 50 : 100 * MARKS);
    }
    close_fixture(&f);
}

// Return the next address of `wanted`'s place and line.
static uint64_t next_rival(struct lane_header *lane, uint64_t wanted, uint64_t address)
{
    do {
        address += 16;
    } while (nursery_block_of(lane, address) != nursery_block_of(lane, wanted) ||
             nursery_line_of(lane, address) != nursery_line_of(lane, wanted));
    return address;
}

// A thread with one block of 100 bytes, whose heap had one of 50 in addition.
static struct lane_producer *leave_a_high_water(struct fixture *f)
{
    struct lane_producer *p = open_one_lane(f);
    assert_true(nursery_allocate(p, address_of(0), 100, 0));
    assert_true(nursery_allocate(p, address_of(1), 50, 1));
    assert_true(nursery_free(p, address_of(1)));
    return p;
}

// A later block that has to make room is not sent before the high-water mark.
static void what_is_displaced_is_no_part_of_the_high_water(void **state)
{
    (void)state;
    static struct fixture f;
    struct lane_producer *p = leave_a_high_water(&f);
    const uint64_t wanted = 0x600000000000;
    uint64_t address = wanted;
    for (uint32_t i = 0; i < NURSERY_LINE + 2; i++) {
        assert_true(nursery_allocate(p, address, 5, 2));
        address = next_rival(p->lane, wanted, address);
    }
    assert_int_equal(p->lane->nursery.evicted_count, 1);
    pass(&f, true);
    assert_int_equal(f.on.aggregator.totals.peak_bytes, 150);
    assert_int_equal(f.on.aggregator.totals.peak_blocks, 2);
    close_fixture(&f);
}

// The thread's latest block may have the address of an earlier block that another thread has freed.
static void two_blocks_of_one_address_are_both_sent(void **state)
{
    (void)state;
    static struct fixture f;
    open_fixture(&f, 2, SESSION_FOLLOW_CHILDREN, true);
    struct lane_producer *p = f.lanes;
    const uint64_t first = 0x600000000000;
    const uint64_t second = next_rival(p->lane, first, first);
    assert_true(nursery_allocate(p, address_of(0), 1000, 0)); // the others set no high-water mark
    assert_true(nursery_free(p, address_of(0)));
    assert_true(nursery_allocate(p, first, 10, 0));
    assert_true(nursery_allocate(p, second, 20, 1)); // in the line
    assert_true(nursery_free(f.lanes + 1, second));
    assert_true(nursery_free(p, first));
    assert_true(nursery_allocate(p, second, 30, 2)); // in its own place
    for (uint32_t i = 0; i < 4; i++) {
        f.clock_ms += 5;
        atomic_store(&f.on.session.header->clock_ms, f.clock_ms);
        assert_true(nursery_begin(p));
        pass(&f, false);
    }
    assert_int_equal(f.on.aggregator.totals.sums.allocations, 4);
    assert_int_equal(f.on.aggregator.totals.sums.frees, 3);
    assert_int_equal(f.on.aggregator.totals.sums.live_bytes, 30);
    close_fixture(&f);
}

// A relieved thread's later events do not concern the high-water mark that was taken from it.
static void a_relieved_thread_stands_on_no_high_water(void **state)
{
    (void)state;
    static struct fixture f;
    struct lane_producer *p = leave_a_high_water(&f);
    const uint64_t clock_ms = f.clock_ms;
    for (uint32_t i = 0; i < 4; i++) {
        f.clock_ms += 5;
        pass(&f, false);
    }
    assert_int_equal(p->lane->nursery.hold_count, 0);
    assert_int_equal(f.on.aggregator.totals.peak_bytes, 150);
    f.clock_ms = clock_ms; // to the thread it is still the same tick
    for (uint32_t i = 2; i < 4; i++) {
        assert_true(nursery_begin(p));
        assert_true(nursery_allocate(p, address_of(i), 40, 2));
        assert_true(nursery_free(p, address_of(i)));
    }
    assert_int_equal(p->lane->nursery.hold_count, 2);
    pass(&f, true);
    assert_int_equal(f.on.aggregator.totals.peak_bytes, 150);
    assert_int_equal(f.on.aggregator.totals.sums.allocations, 4);
    close_fixture(&f);
}

// The steps of two threads at one of three addresses: a allocates, c allocates too much to be held,
// f frees, b begins to reallocate, e ends that. The test tries all possible orders: a freed block
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

// As record_realloc_begins does. Then the allocator frees the block.
static void small_begin_move(struct lane_producer *p, struct small_run *run, uint32_t lane)
{
    const uint64_t stamp = stamp_now(p->session);
    atomic_store(&p->lane->pending_stamps[LANE_PENDING_REALLOC], stamp);
    run->note[lane] = (struct freed_note){
        .stamp = stamp, .latest = freed_table_note(p->freed, run->moved[lane], stamp)};
}

static void
small_end_move(struct lane_producer *p, const struct small_run *run, uint32_t lane, uint32_t at)
{
    assert_true(nursery_begin(p));
    assert_true(nursery_reallocate(p, run->moved[lane], address_of(at), run->sizes[at], lane,
                                   run->note[lane]));
    atomic_store(&p->lane->pending_stamps[LANE_PENDING_REALLOC], 0);
}

static bool small_step(struct fixture *f, struct small_run *run, uint32_t lane, const char *what)
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
        assert_true(nursery_begin(p));
        assert_true(nursery_allocate(p, address_of(at), run->sizes[at], lane));
        break;
    case 'f':
        assert_true(nursery_begin(p));
        assert_true(nursery_free(p, address_of(at)));
        break;
    case 'b':
        run->moved[lane] = address_of(at);
        small_begin_move(p, run, lane);
        break;
    default:
        small_end_move(p, run, lane, at);
    }
    return true;
}

static void check_small(struct fixture *f, const struct small_run *run, uint64_t settled_bytes)
{
    struct aggregator *aggregator = &f->on.aggregator;
    aggregator_settle(aggregator, aggregator->processes.items[0], UINT64_MAX);
    assert_int_equal(row_table_count(&aggregator->totals.rows), ERR_OK);
    assert_int_equal(aggregator->unknown_frees, 0);
    assert_int_equal(aggregator->totals.sums.live_bytes, run->live_bytes + settled_bytes);
    assert_int_equal(aggregator->totals.sums.temporary, run->temporary);
    for (uint32_t i = 0; i < aggregator->totals.rows.rows.len; i++) {
        const struct rec_row *row = aggregator->totals.rows.rows.items + i;
        const uint32_t frame = aggregator->stacks.nodes.items[row->node].frame;
        const uint64_t slot = aggregator->stacks.frames.items[frame].offset - 0x1000;
        assert_int_equal(row->frees, slot < 2 ? run->frees[slot] : 0);
    }
    const uint64_t peak = run->peak_bytes + settled_bytes;
    const uint64_t found = aggregator->totals.peak_bytes;
    assert_in_range(peak, found, found + peak_bound_above(&aggregator->bound, found));
}

// Run the steps. `order`: bit i selects the thread of the i-th step. Return whether that is
// possible. Before the steps whose bit is set in `looks` the recorder runs passes, and time
// advances.
static bool run_small(const struct small *small, uint32_t order, uint32_t looks)
{
    static struct fixture f;
    const uint64_t settled_bytes = (uint64_t)2 << 20; // so that blocks may be held
    struct small_run run = {0};
    const char *next[2] = {small->threads[0], small->threads[1]};
    open_fixture(&f, 2, SESSION_FOLLOW_CHILDREN, true);
    assert_true(nursery_allocate(f.lanes, address_of(100), settled_bytes, 2));
    pass(&f, false); // so that the threads see what they may hold
    f.clock_ms++;
    atomic_store(&f.on.session.header->clock_ms, f.clock_ms);
    bool is_possible = true;
    for (uint32_t i = 0; is_possible && (*next[0] != '\0' || *next[1] != '\0'); i++) {
        const uint32_t lane = order >> i & 1;
        // relieving a thread takes several
        for (uint32_t k = 0; k < 3 && (looks >> i & 1) != 0; k++) {
            f.clock_ms += 2;
            atomic_store(&f.on.session.header->clock_ms, f.clock_ms);
            pass(&f, false);
        }
        is_possible = *next[lane] != '\0' && small_step(&f, &run, lane, next[lane]);
        next[lane] += 2;
    }
    if (is_possible) {
        for (uint32_t i = 0; i < 4; i++) {
            f.clock_ms += 5;
            pass(&f, i == 3);
        }
        check_small(&f, &run, settled_bytes);
    }
    close_fixture(&f);
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
            for (uint32_t looks = 0; looks < 1u << steps; looks++) {
                if (!run_small(histories + i, order, looks)) {
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
        cmocka_unit_test(what_is_held_back_makes_no_difference),
        cmocka_unit_test(more_is_held_back_while_the_recorder_is_pressed),
        cmocka_unit_test(what_is_displaced_is_no_part_of_the_high_water),
        cmocka_unit_test(two_blocks_of_one_address_are_both_sent),
        cmocka_unit_test(a_relieved_thread_stands_on_no_high_water),
        cmocka_unit_test(a_freed_block_that_was_sent_leaves_the_sum),
        cmocka_unit_test(what_cannot_be_sent_is_told),
        cmocka_unit_test(there_may_be_more_high_water_than_stamps),
        cmocka_unit_test(small_histories_are_right_in_all_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
