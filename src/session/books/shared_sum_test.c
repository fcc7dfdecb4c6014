// SPDX-License-Identifier: MIT
// Threads that change one heap, against two sums that each event changes: one has a block from its
// event's beginning to the end of its free, the other one from its event's end to the beginning of
// its free. The peak is between theirs within its bound, and so is the sum of what the rows held at
// that peak.
#include "session/books/shared_sum.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/test_support/random_numbers.h"
#include "session/books/peak_share.h"

enum {
    THREADS_MAX = 16,
    EVENTS = 40000, // of a thread
    ROWS = 8,
    ROUNDS = 12,
    HANDED_MAX = 256,
    SHARE_EVENTS = 500, // then a thread gives its shares to the rows
};

enum shape {
    SHAPE_GROWS,  // and shrinks at the end
    SHAPE_SWINGS, // each thread by itself, up and down
    SHAPE_HANDS,  // one half of the threads allocates, the other half frees
    SHAPE_COUNT,
};

struct heap {
    struct shared_sum sum;
    pthread_mutex_t lock;
    pthread_barrier_t start;
    struct peak_share rows[ROWS]; // under the lock
    enum shape shape;
    int64_t block_max;
    _Alignas(64) _Atomic int64_t least_bytes;
    _Atomic int64_t least_peak;
    _Atomic int64_t most_bytes;
    _Atomic int64_t most_peak;
    _Atomic int64_t handed;
};

struct worker {
    struct heap *on;
    pthread_t thread;
    uint32_t number;
    uint64_t random;
    int64_t own_bytes;
    struct sum_part part;
    struct peak_share shares[ROWS];
};

static void raise(_Atomic int64_t *most, int64_t value)
{
    int64_t seen = atomic_load(most);
    while (seen < value && !atomic_compare_exchange_weak(most, &seen, value)) {
    }
}

static void give_shares(struct worker *w)
{
    (void)pthread_mutex_lock(&w->on->lock);
    for (uint32_t i = 0; i < ROWS; i++) {
        peak_share_merge(&w->on->rows[i], &w->shares[i]);
    }
    (void)pthread_mutex_unlock(&w->on->lock);
    memset(w->shares, 0, sizeof(w->shares));
}

static void change_true(_Atomic int64_t *bytes, _Atomic int64_t *peak, int64_t delta)
{
    raise(peak, atomic_fetch_add(bytes, delta) + delta);
}

static void before_free(struct shared_sum *sum, struct sum_part *part)
{
    if (!shared_sum_before_free(sum, part)) {
        (void)shared_sum_send(sum, part);
    }
}

static void change(struct worker *w, int64_t delta)
{
    struct heap *on = w->on;
    if (delta > 0) {
        change_true(&on->most_bytes, &on->most_peak, delta);
    } else {
        atomic_fetch_add(&on->least_bytes, delta);
        before_free(&on->sum, &w->part);
    }
    struct peak_share *share = &w->shares[next_random(&w->random) % ROWS];
    const uint32_t number = shared_sum_number(&on->sum);
    peak_share_add(share, shared_sum_add(&on->sum, &w->part, number, delta), delta);
    if (delta > 0) {
        change_true(&on->least_bytes, &on->least_peak, delta);
    } else {
        atomic_fetch_add(&on->most_bytes, delta);
    }
    w->own_bytes += delta;
}

// Return how the next event changes the heap.
static int64_t draw(struct worker *w, uint32_t event)
{
    const uint64_t r = next_random(&w->random);
    const int64_t size = 1 + (int64_t)((r >> 8) % (uint64_t)w->on->block_max);
    switch (w->on->shape) {
    case SHAPE_GROWS:
        return r % 4 != 0 || w->own_bytes < size ? size : -size;
    case SHAPE_SWINGS:
        return event / 3000 % 2 == 0 ? size : w->own_bytes < size ? 0 : -size;
    default:
        return w->number % 2 == 0 ? size : -size;
    }
}

// Hand over at most so much that the heap stays small.
static bool may_hand(struct heap *on, int64_t delta)
{
    const int64_t handed = atomic_fetch_add(&on->handed, delta) + delta;
    if (handed >= 0 && handed <= HANDED_MAX * on->block_max) {
        return true;
    }
    atomic_fetch_sub(&on->handed, delta);
    return false;
}

static void *work(void *context)
{
    struct worker *w = context;
    shared_sum_join(&w->on->sum, &w->part);
    (void)pthread_barrier_wait(&w->on->start);
    for (uint32_t i = 0; i < EVENTS; i++) {
        const int64_t delta = draw(w, i);
        if (w->on->shape != SHAPE_HANDS || may_hand(w->on, delta)) {
            change(w, delta);
        }
        if (i % SHARE_EVENTS == w->number) {
            give_shares(w);
        }
    }
    if (w->on->shape != SHAPE_HANDS) {
        change(w, -w->own_bytes);
    }
    give_shares(w);
    (void)shared_sum_send(&w->on->sum, &w->part);
    shared_sum_release(&w->on->sum, &w->part);
    shared_sum_leave(&w->on->sum, 1);
    return NULL;
}

static void run(struct heap *on, uint32_t threads, uint64_t seed)
{
    struct worker workers[THREADS_MAX] = {{0}};
    assert_int_equal(pthread_mutex_init(&on->lock, NULL), 0);
    assert_int_equal(pthread_barrier_init(&on->start, NULL, threads), 0);
    for (uint32_t i = 0; i < threads; i++) {
        workers[i] = (struct worker){.on = on, .number = i, .random = seed * 131 + i + 1};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < threads; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    }
    (void)pthread_barrier_destroy(&on->start);
    (void)pthread_mutex_destroy(&on->lock);
}

static void expect_between(int64_t found, int64_t low, int64_t high, const char *what)
{
    if (found < low || found > high) {
        print_error("%s: %lld is not from %lld to %lld\n", what, (long long)found, (long long)low,
                    (long long)high);
        fail();
    }
}

static void the_peak_is_within_its_bound(void **state)
{
    (void)state;
    static const uint32_t counts[] = {1, 2, 4, 16};
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const uint32_t threads = counts[round / SHAPE_COUNT % 4];
        struct heap *on = aligned_alloc(64, (sizeof(*on) + 63) / 64 * 64);
        assert_non_null(on);
        memset(on, 0, sizeof(*on));
        on->shape = round % SHAPE_COUNT;
        on->block_max = round % 2 == 0 ? 100 : 4000;
        run(on, threads, round + 1);
        const struct sum_value value = shared_sum_read(&on->sum);
        const int64_t bound = (int64_t)shared_sum_error(&on->sum, &value);
        const int64_t peak = (int64_t)value.peak_bytes;
        int64_t owners = 0;
        for (uint32_t i = 0; i < ROWS; i++) {
            owners += peak_share_at(&on->rows[i], value.number);
        }
        assert_true(value.sum_bytes == on->most_bytes && value.sum_bytes == on->least_bytes);
        assert_true(shared_sum_number(&on->sum) >= value.number);
        assert_int_equal(on->sum.kept_bytes, 0);
        expect_between(peak, on->least_peak - bound, on->most_peak + bound, "peak");
        expect_between(owners, peak - bound, peak + bound, "owners");
        // The batches of threads that come one after the other: 1/1 + 1/2 ... 1/16 is below 4.
        expect_between(bound, 0,
                       threads == 1 ? 0
                                    : peak * 4 / SUM_PEAK_SHARES + SUM_ALONE_MIN +
                                          (int64_t)threads * SUM_BATCH_MIN,
                       "bound");
        if (threads == 1) {
            assert_true(peak == on->least_peak && owners == peak);
        }
        free(on);
    }
}

static void the_batch_follows_peak_and_threads(void **state)
{
    (void)state;
    struct shared_sum sum = {0};
    struct sum_part parts[3];
    shared_sum_join(&sum, parts);
    assert_int_equal(parts[0].batch_bytes, SUM_ALONE_MIN);
    for (int i = 0; i < 1000; i++) {
        (void)shared_sum_add(&sum, parts, 0, 40960);
    }
    const uint64_t peak = shared_sum_send(&sum, parts).peak_bytes;
    assert_in_range(parts[0].batch_bytes, peak / SUM_ALONE_SHARES * 8 / 9, peak / SUM_ALONE_SHARES);
    assert_int_equal(sum.kept_bytes, parts[0].batch_bytes);
    shared_sum_join(&sum, parts + 1);
    shared_sum_join(&sum, parts + 2);
    assert_int_equal(parts[1].batch_bytes, peak / SUM_PEAK_SHARES / 2);
    assert_int_equal(parts[2].batch_bytes, peak / SUM_PEAK_SHARES / 3);
    (void)shared_sum_send(&sum, parts + 1);
    assert_int_equal(parts[1].batch_bytes, peak / SUM_PEAK_SHARES / 3);
    shared_sum_release(&sum, parts + 1);
    shared_sum_leave(&sum, 1);
    (void)shared_sum_send(&sum, parts + 2);
    assert_int_equal(parts[2].batch_bytes, peak / SUM_PEAK_SHARES / 2);
    assert_int_equal(sum.kept_bytes, parts[0].batch_bytes + parts[2].batch_bytes);
}

static void large_sums_and_negative_ones_are_exact(void **state)
{
    (void)state;
    struct shared_sum sum = {0};
    struct sum_part part;
    shared_sum_join(&sum, &part);
    part.unsent_bytes = -1000;
    assert_true(shared_sum_send(&sum, &part).sum_bytes == -1000);
    assert_int_equal(shared_sum_read(&sum).number, 0);
    (void)shared_sum_add(&sum, &part, 0, (int64_t)1 << 46);
    const struct sum_value value = shared_sum_read(&sum);
    assert_true(value.sum_bytes == ((int64_t)1 << 46) - 1000);
    assert_true(value.peak_bytes == ((uint64_t)1 << 46) - 1000);
    assert_int_equal(value.number, 1);
    for (uint32_t i = 2; i < 70000; i++) { // the number's two halves
        part.unsent_bytes = 1;
        assert_int_equal(shared_sum_send(&sum, &part).number, i);
    }
    (void)shared_sum_add(&sum, &part, 0, -((int64_t)1 << 46));
    assert_true(shared_sum_read(&sum).sum_bytes == -1000 + 69998);
}

// A thread was stopped between the exchange and the copy.
static void the_next_addition_repairs_the_number(void **state)
{
    (void)state;
    struct shared_sum sum = {0};
    struct sum_part part;
    shared_sum_join(&sum, &part);
    part.unsent_bytes = 100;
    assert_int_equal(shared_sum_send(&sum, &part).number, 1);
    sum.number = 0;
    part.unsent_bytes = -50; // no new peak
    assert_int_equal(shared_sum_send(&sum, &part).number, 1);
    assert_int_equal(shared_sum_number(&sum), 1);
    sum.number = 5; // a copy that is ahead stays
    (void)shared_sum_read(&sum);
    assert_int_equal(shared_sum_number(&sum), 5);
}

// No thread adds what would have been a new peak: another one frees it first.
static void a_peak_that_no_addition_shows_is_within_the_bound(void **state)
{
    (void)state;
    struct shared_sum sum = {0};
    struct sum_part parts[2];
    shared_sum_join(&sum, parts);
    parts[0].unsent_bytes = 5000;
    struct sum_value value = shared_sum_send(&sum, parts);
    assert_int_equal(value.peak_bytes, 5000);
    assert_int_equal(shared_sum_error(&sum, &value), 0); // alone: exact
    (void)shared_sum_add(&sum, parts, 0, 1000);          // it keeps that: the true peak is 6000
    shared_sum_join(&sum, parts + 1);
    before_free(&sum, parts + 1);
    (void)shared_sum_add(&sum, parts + 1, 0, -1000);
    value = shared_sum_send(&sum, parts);
    assert_int_equal(value.peak_bytes, 5000);
    assert_in_range(shared_sum_error(&sum, &value), 1000, SUM_ALONE_MIN + SUM_BATCH_MIN);
    // Far below the peak, what threads keep cannot be above it.
    parts[0].unsent_bytes = 900000;
    value = shared_sum_send(&sum, parts);
    const uint64_t error_bytes = shared_sum_error(&sum, &value);
    assert_in_range(error_bytes, 2 * SUM_BATCH_MIN, sum.kept_bytes);
    (void)shared_sum_add(&sum, parts + 1, 0, -500000);
    (void)shared_sum_add(&sum, parts + 1, 0, 400000);
    assert_int_equal(shared_sum_error(&sum, &value), error_bytes);
}

// A thread that was alone, and does not know it, keeps less than one that knows.
static void a_thread_that_is_alone_again_states_its_error(void **state)
{
    (void)state;
    struct shared_sum sum = {0};
    struct sum_part parts[2];
    shared_sum_join(&sum, parts);
    shared_sum_join(&sum, parts + 1);
    (void)shared_sum_send(&sum, parts);
    shared_sum_release(&sum, parts + 1);
    shared_sum_leave(&sum, 1);
    (void)shared_sum_add(&sum, parts, 0, 40); // kept, and not seen: the true peak
    before_free(&sum, parts);
    (void)shared_sum_add(&sum, parts, 0, -40);
    struct sum_value value = shared_sum_send(&sum, parts);
    assert_in_range(value.peak_bytes + shared_sum_error(&sum, &value), 40, SUM_ALONE_MIN + 96);
    const uint64_t most_bytes = sum.most_bytes;
    (void)shared_sum_add(&sum, parts, 0, 900); // now it knows
    before_free(&sum, parts);
    (void)shared_sum_add(&sum, parts, 0, -900);
    value = shared_sum_send(&sum, parts);
    assert_int_equal(value.peak_bytes, 900);
    assert_int_equal(sum.most_bytes, most_bytes);
}

// A program executes another one: its thread is taken out, its blocks, and later its part.
static void the_peak_before_an_exec_stays_exact(void **state)
{
    (void)state;
    struct shared_sum sum = {0};
    struct sum_part before;
    struct sum_part after;
    shared_sum_join(&sum, &before);
    before.unsent_bytes = 700;
    (void)shared_sum_send(&sum, &before);
    (void)shared_sum_add(&sum, &before, 0, -100); // it keeps that
    shared_sum_leave(&sum, 1);
    shared_sum_change(&sum, -700);
    shared_sum_join(&sum, &after);
    const struct sum_value value = shared_sum_send(&sum, &before);
    assert_int_equal(value.peak_bytes, 700);
    assert_int_equal(shared_sum_error(&sum, &value), 0);
}

// The free of a large block overlaps a new peak. It comes after the peak that its addition finds.
static void an_event_that_is_added_knows_its_peak(void **state)
{
    (void)state;
    struct shared_sum sum = {0};
    struct sum_part parts[2];
    shared_sum_join(&sum, parts);
    shared_sum_join(&sum, parts + 1);
    assert_int_equal(shared_sum_add(&sum, parts, 0, 9000), 0); // it set peak 1
    const uint32_t number = shared_sum_number(&sum);
    assert_int_equal(shared_sum_add(&sum, parts + 1, number, 1000), 1); // it set peak 2
    assert_int_equal(shared_sum_add(&sum, parts, number, -9000), 2);
    assert_int_equal(shared_sum_read(&sum).peak_bytes, 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_peak_is_within_its_bound),
        cmocka_unit_test(the_batch_follows_peak_and_threads),
        cmocka_unit_test(large_sums_and_negative_ones_are_exact),
        cmocka_unit_test(the_next_addition_repairs_the_number),
        cmocka_unit_test(a_peak_that_no_addition_shows_is_within_the_bound),
        cmocka_unit_test(a_thread_that_is_alone_again_states_its_error),
        cmocka_unit_test(the_peak_before_an_exec_stays_exact),
        cmocka_unit_test(an_event_that_is_added_knows_its_peak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
