// SPDX-License-Identifier: MIT
// The nursery from end to end: a drain reads what random threads write; the figures must agree with
// the events, and with a session in which every event is sent.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/test_support/random_numbers.h"
#include "recorder/session/test_nursery.h"

enum {
    ADDRESSES = 2000,
    EVENTS = 30000,
    TICK_EVENTS = 400, // on average
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
    uint32_t
        latest[TEST_LANES_MAX]; // address index + 1 of the allocation by the lane's latest event
};

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

static void step(struct test_nursery *f, struct stream *s)
{
    uint32_t lane = (uint32_t)(next_random(&s->random) % f->lane_count);
    const uint32_t slot = (uint32_t)(next_random(&s->random) % TEST_STACKS);
    const uint32_t victim = choose_victim(s, lane);
    if (victim < ADDRESSES && next_random(&s->random) % 64 >= s->taste->foreign) {
        lane = s->blocks[victim].lane;
    }
    struct lane_producer *p = f->lanes + lane;
    assert_true(nursery_begin(p));
    if (victim < ADDRESSES && next_random(&s->random) % 8 >= s->taste->grow) {
        assert_true(nursery_free(p, test_address(victim)));
        forget(s, lane, victim);
        return;
    }
    const uint64_t size_bytes = random_size(s);
    if (victim < ADDRESSES) {
        // As a hook does it, before the allocator frees it.
        const uint64_t stamp = p->is_ordered ? stamp_now(p->session) : 0;
        const struct freed_note freed = {
            .stamp = stamp,
            .latest = stamp != 0 ? freed_table_note(p->freed, test_address(victim), stamp) : 0,
        };
        forget(s, lane, victim);
        const bool stays = next_random(&s->random) % 2 == 0;
        const uint32_t to = stays ? victim : unused_index(s);
        assert_true(
            nursery_reallocate(p, test_address(victim), test_address(to), size_bytes, slot, freed));
        remember(s, lane, to, size_bytes);
        return;
    }
    const uint32_t index = unused_index(s);
    assert_true(nursery_allocate(p, test_address(index), size_bytes, slot));
    remember(s, lane, index, size_bytes);
}

static void run_stream(struct test_nursery *f, struct stream *s)
{
    uint64_t schedule = s->random ^ 0x5555; // its own, so that all sessions see the same events
    uint64_t pause = 0;
    for (uint32_t i = 0; i < EVENTS; i++) {
        if (next_random(&schedule) % TICK_EVENTS == 0) {
            test_nursery_advance(f, next_random(&schedule) % 8 == 0 ? 5 : 1);
            pause = next_random(&schedule) % 4; // how many passes before the threads continue
        }
        for (; pause > 0; pause--) {
            test_nursery_pass(f, false);
        }
        if (next_random(&schedule) % 100 == 0) {
            test_nursery_pass(f, false);
        }
        step(f, s);
    }
    test_nursery_pass(f, true);
    aggregator_expire_frees(&f->on.aggregator, f->on.aggregator.processes.items[0], UINT64_MAX);
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
    row_table_commit_peak(rows, found, true, 0);
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
        row_table_commit_peak(&held->rows, i, true, 0);
        const struct rec_row *a = held->rows.rows.items + i;
        const uint32_t k = row_of_node(&sent->rows, held->rows.rows.items[i].node);
        const struct rec_row *b = sent->rows.rows.items + k;
        const struct row_extra *x = held->rows.extras.items + i;
        const struct row_extra *y = sent->rows.extras.items + k;
        compare_row(a, b);
        compare_buckets(&x->histograms[ROW_ALLOCATED], &y->histograms[ROW_ALLOCATED],
                        a->allocations, a->allocated_bytes);
        compare_buckets(&x->histograms[ROW_FREED], &y->histograms[ROW_FREED], a->frees,
                        a->freed_bytes);
    }
}

static void check_against_truth(const struct test_nursery *f, const struct stream *s)
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
    const uint64_t less = peak_bound_below(&f->on.aggregator.bound, totals->peak_bytes);
    assert_in_range(s->peak_bytes, totals->peak_bytes - less, totals->peak_bytes + above);
    assert_true(less <= (f->lane_count > 1 ? totals->peak_bytes / 64 : 0)); // what threads may hold
    assert_true(f->lane_count > 1 || above == 0);
}

static void run_taste(const struct taste *taste, uint64_t seed)
{
    static struct test_nursery held;
    static struct test_nursery sent;
    static struct stream streams[2];
    test_nursery_open(&held, taste->lanes, seed % 2 == 0 ? SESSION_ALWAYS_HOLD : 0);
    test_nursery_open(&sent, taste->lanes, SESSION_NO_NURSERY);
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
    test_nursery_close(&held);
    test_nursery_close(&sent);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_held_back_makes_no_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
