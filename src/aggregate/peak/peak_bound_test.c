// SPDX-License-Identifier: MIT
// peak_bound against the allocator's view: threads whose blocks appear some time before their
// stamps and disappear some time after, by as much as a thread can be late.
#include "aggregate/peak/peak_bound.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/test_support/random_numbers.h"

enum {
    THREADS_MAX = 6,
    EVENTS = 400,
    SIZE_MAX_BYTES = 1000,
    MOMENTS = EVENTS * 16, // of stamps; other threads' moments lie between two events
};

struct event {
    uint64_t stamp;
    int64_t change_bytes;
    uint32_t thread;
    bool is_early; // it has the stamp of its thread's previous event
};

struct history {
    struct event events[EVENTS];
    int64_t true_change[MOMENTS + 1]; // what the allocator does at each moment
    uint32_t thread_count;
};

// Make events at the moments 16, 32, ...; each thread frees what it allocated, latest first.
static void make_history(struct history *h, uint32_t thread_count, uint64_t seed)
{
    static int64_t stacks[THREADS_MAX][EVENTS];
    uint32_t depth[THREADS_MAX] = {0};
    uint64_t random = seed * 0x9e3779b97f4a7c15ULL + 1;
    *h = (struct history){.thread_count = thread_count};
    for (uint32_t i = 0; i < EVENTS; i++) {
        const uint32_t thread = (uint32_t)(next_random(&random) % thread_count);
        int64_t change = 1 + (int64_t)(next_random(&random) % SIZE_MAX_BYTES);
        if (depth[thread] > 0 && next_random(&random) % 2 == 0) {
            change = -stacks[thread][--depth[thread]];
        } else {
            stacks[thread][depth[thread]++] = change;
        }
        h->events[i] = (struct event){
            .stamp = (i + (uint64_t)1) * 15, .change_bytes = change, .thread = thread};
    }
}

// Return the moment of the previous or next event of the thread of event `i`.
static uint64_t neighbour(const struct history *h, uint32_t i, int step)
{
    const uint32_t thread = h->events[i].thread;
    for (int64_t k = (int64_t)i + step; k >= 0 && k < EVENTS; k += step) {
        if (h->events[k].thread == thread) {
            return h->events[k].stamp;
        }
    }
    return step < 0 ? 0 : MOMENTS;
}

// Let allocations happen before their stamps and frees after; the events of a thread stay in order.
static void delay_events(struct history *h, uint64_t seed)
{
    uint64_t random = seed;
    memset(h->true_change, 0, sizeof(h->true_change));
    for (uint32_t i = 0; i < EVENTS; i++) {
        const struct event *e = h->events + i;
        const bool is_late = next_random(&random) % 3 == 0;
        uint64_t at = e->stamp;
        if (is_late && e->change_bytes > 0) {
            at -= next_random(&random) % ((e->stamp - neighbour(h, i, -1)) / 2);
        } else if (is_late) {
            at += next_random(&random) % ((neighbour(h, i, 1) - e->stamp) / 2);
        }
        h->true_change[at] += e->change_bytes;
    }
}

static uint64_t true_peak(const struct history *h)
{
    int64_t live = 0;
    int64_t peak = 0;
    for (uint32_t at = 0; at <= MOMENTS; at++) {
        live += h->true_change[at];
        peak = live > peak ? live : peak;
    }
    return (uint64_t)peak;
}

// What the aggregator keeps.
struct feed {
    struct peak_bound *bound;
    struct peak_flight flights[THREADS_MAX];
    uint64_t stamps[THREADS_MAX]; // of the threads' latest events
    uint64_t live;
    uint64_t peak;
};

static void feed_event(struct feed *f, const struct event *e)
{
    struct peak_flight *flight = f->flights + e->thread;
    const uint64_t stamp = e->is_early ? f->stamps[e->thread] : e->stamp;
    const bool is_allocation = e->change_bytes > 0;
    if (is_allocation) {
        peak_bound_allocating(f->bound, flight, stamp, (uint64_t)e->change_bytes);
    }
    f->stamps[e->thread] = stamp;
    f->live += (uint64_t)e->change_bytes;
    if (f->live > f->peak) {
        f->peak = f->live;
        peak_bound_peaked(f->bound);
    }
    if (is_allocation) {
        peak_bound_allocated(f->bound, flight, stamp, (uint64_t)e->change_bytes, f->live);
    } else {
        peak_bound_freed(f->bound, flight, stamp, (uint64_t)-e->change_bytes, f->live);
    }
}

// Return the peak as the aggregator sees it. Early events come right after their threads' previous
// ones, but some are read too late for that and come where they are.
static uint64_t feed(const struct history *h, struct peak_bound *bound, uint64_t seed)
{
    struct feed f = {.bound = bound};
    uint64_t random = seed;
    bool is_fed[EVENTS] = {false};
    for (uint32_t i = 0; i < EVENTS; i++) {
        const uint32_t thread = h->events[i].thread;
        if (!is_fed[i]) {
            feed_event(&f, h->events + i);
        }
        for (uint32_t k = i + 1; k < EVENTS && !is_fed[i]; k++) {
            if (h->events[k].thread == thread && !h->events[k].is_early) {
                break;
            }
            if (h->events[k].thread == thread && next_random(&random) % 4 == 0) {
                break;
            }
            if (h->events[k].thread == thread) {
                feed_event(&f, h->events + k);
                is_fed[k] = true;
            }
        }
        is_fed[i] = true;
    }
    return f.peak;
}

// Let some allocations be early.
static void make_early(struct history *h, uint64_t seed)
{
    bool has_begun[THREADS_MAX] = {false};
    uint64_t random = seed;
    for (uint32_t i = 0; i < EVENTS; i++) {
        struct event *e = h->events + i;
        e->is_early = has_begun[e->thread] && e->change_bytes > 0 && next_random(&random) % 2 == 0;
        has_begun[e->thread] = true;
    }
}

static void threads_may_be_late_by_one_block_each(void **state)
{
    (void)state;
    static struct history h;
    for (uint32_t threads = 1; threads <= THREADS_MAX; threads++) {
        for (uint64_t seed = 1; seed <= 40; seed++) {
            struct peak_bound bound = {0};
            make_history(&h, threads, seed);
            const uint64_t peak = feed(&h, &bound, seed);
            const uint64_t above = peak_bound_above(&bound, peak);
            assert_int_equal(peak_bound_below(&bound, peak), 0);
            assert_int_equal(peak_bound_order_above(&bound, peak), 0);
            assert_in_range(above, 0, (uint64_t)threads * SIZE_MAX_BYTES);
            for (uint64_t delays = 1; delays <= 20; delays++) {
                delay_events(&h, delays * 77 + seed);
                assert_in_range(true_peak(&h), peak, peak + above);
            }
        }
    }
}

static void blocks_without_stamps_may_come_later_than_they_count(void **state)
{
    (void)state;
    static struct history h;
    uint64_t wide = 0;
    for (uint32_t threads = 1; threads <= THREADS_MAX; threads++) {
        for (uint64_t seed = 1; seed <= 40; seed++) {
            struct peak_bound bound = {0};
            make_history(&h, threads, seed);
            make_early(&h, seed);
            const uint64_t peak = feed(&h, &bound, seed);
            const uint64_t above = peak_bound_above(&bound, peak);
            const uint64_t less = peak_bound_below(&bound, peak);
            assert_int_equal(peak_bound_order_above(&bound, peak), 0);
            wide += (less + above) * 100 / peak;
            for (uint64_t delays = 1; delays <= 20; delays++) {
                delay_events(&h, delays * 77 + seed);
                assert_in_range(true_peak(&h), peak - less, peak + above);
            }
        }
    }
    print_message("the bound is %d %% wide\n", (int)(wide / THREADS_MAX / 40));
}

static void an_early_block_takes_the_place_of_what_was_freed(void **state)
{
    (void)state;
    struct peak_bound bound = {0};
    struct peak_flight one = {0};
    peak_bound_allocating(&bound, &one, 10, 100);
    peak_bound_allocated(&bound, &one, 10, 100, 100);
    peak_bound_freed(&bound, &one, 20, 100, 0);
    peak_bound_allocating(&bound, &one, 20, 30);
    peak_bound_allocated(&bound, &one, 20, 30, 30);
    assert_int_equal(bound.flight_bytes, 70);
    assert_int_equal(bound.early_bytes, 30);
    peak_bound_allocating(&bound, &one, 20, 170);
    peak_bound_peaked(&bound);
    peak_bound_allocated(&bound, &one, 20, 170, 200);
    assert_int_equal(bound.flight_bytes, 0);
    assert_int_equal(peak_bound_below(&bound, 200), 200);
    peak_bound_allocating(&bound, &one, 30, 50); // by then the others have come
    peak_bound_peaked(&bound);
    peak_bound_allocated(&bound, &one, 30, 50, 250);
    assert_int_equal(peak_bound_below(&bound, 250), 0);
    assert_int_equal(peak_bound_above(&bound, 250), 0);
}

static void what_was_freed_is_there_until_the_threads_next_event(void **state)
{
    (void)state;
    struct peak_bound bound = {0};
    struct peak_flight one = {0};
    struct peak_flight other = {0};
    peak_bound_allocated(&bound, &one, 10, 100, 100);
    peak_bound_freed(&bound, &one, 20, 100, 0);
    peak_bound_allocated(&bound, &other, 30, 70, 70); // while the first may still be there
    assert_int_equal(peak_bound_above(&bound, 100), 70);
    assert_int_equal(peak_bound_order_above(&bound, 100), 0);
    peak_bound_landed(&bound, &one);
    peak_bound_freed(&bound, &other, 40, 70, 0);
    peak_bound_allocated(&bound, &other, 50, 190, 190);
    assert_int_equal(peak_bound_above(&bound, 190), 0);
    assert_int_equal(bound.flight_bytes, 0);
}

// The peak was counted with a block that had been freed before.
static void what_comes_late_may_have_made_the_peak_too_high(void **state)
{
    (void)state;
    struct peak_bound bound = {0};
    struct peak_flight one = {0};
    struct peak_flight other = {0};
    peak_bound_allocated(&bound, &one, 10, 100, 100);
    peak_bound_allocated(&bound, &other, 30, 70, 170);
    peak_bound_peaked(&bound);
    peak_bound_freed(&bound, &one, 20, 100, 70);
    assert_int_equal(peak_bound_below(&bound, 170), 100);
    assert_int_equal(peak_bound_below(&bound, 80), 80); // never negative
    peak_bound_allocated(&bound, &other, 40, 500, 570);
    peak_bound_peaked(&bound);
    assert_int_equal(peak_bound_below(&bound, 570), 0);
}

static void who_was_found_dead_may_have_lived_until_then(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t until_stamp;
        uint64_t next_stamp;
        uint64_t above;
        uint64_t order_above; // the last block has a stamp, too
    } cases[] = {
        {"before it was found", 50, 40, 500, 500},
        {"at that moment", 50, 50, 500, 0},
        {"after that", 50, 51, 0, 0},
        {"its exit is known", 0, 40, 0, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("%s\n", cases[i].name);
        struct peak_bound bound = {0};
        struct peak_flight one = {0};
        peak_bound_allocated(&bound, &one, 10, 1000, 1000);
        peak_bound_leave(&bound, 500, cases[i].until_stamp, 500);
        peak_bound_freed(&bound, &one, cases[i].next_stamp, 0, 500);
        peak_bound_allocated(&bound, &one, cases[i].next_stamp + 1, 700, 1200);
        assert_int_equal(peak_bound_above(&bound, 1200), cases[i].above);
        assert_int_equal(peak_bound_order_above(&bound, 1200), cases[i].order_above);
    }
}

// A flight that has come down counts only for the allocator.
static void only_flights_are_left_out_of_the_programs_order(void **state)
{
    (void)state;
    struct peak_bound bound = {0};
    struct peak_flight one = {0};
    struct peak_flight other = {0};
    peak_bound_allocated(&bound, &one, 10, 100, 100);
    peak_bound_freed(&bound, &one, 20, 60, 40);
    peak_bound_rested(&bound, &one, 90);
    peak_bound_allocated(&bound, &other, 30, 80, 120);
    assert_int_equal(peak_bound_above(&bound, 120), 60);
    assert_int_equal(peak_bound_order_above(&bound, 120), 0);
}

// A thread is found asleep, or to have ended, while events that precede that moment are uncounted.
static void an_early_block_is_early_until_its_thread_rested(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t rest_stamp;
        uint64_t next_stamp; // of another thread
        uint64_t below;
    } cases[] = {
        {"after the other event", 50, 40, 30},
        {"at that moment", 50, 50, 30},
        {"before the other event", 50, 51, 0},
        {"before all events", 10, 40, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("%s\n", cases[i].name);
        struct peak_bound bound = {0};
        struct peak_flight one = {0};
        struct peak_flight other = {0};
        peak_bound_allocating(&bound, &one, 10, 1000);
        peak_bound_allocated(&bound, &one, 10, 1000, 1000);
        peak_bound_allocating(&bound, &one, 10, 30);
        peak_bound_allocated(&bound, &one, 10, 30, 1030);
        peak_bound_rested(&bound, &one, cases[i].rest_stamp);
        assert_int_equal(one.early_bytes, 0);
        assert_int_equal(one.stamp, cases[i].rest_stamp);
        peak_bound_freed(&bound, &other, cases[i].next_stamp, 0, 1030);
        peak_bound_peaked(&bound);
        assert_int_equal(peak_bound_below(&bound, 1030), cases[i].below);
        peak_bound_freed(&bound, &other, 100, 0, 1030);
        assert_int_equal(bound.early_bytes, 0);
        assert_int_equal(bound.ghost_count, 0);
    }
}

static void ghosts_and_steps_are_bounded(void **state)
{
    (void)state;
    static struct peak_bound bound;
    struct peak_flight flight = {0};
    for (uint64_t i = 1; i <= 10000; i++) {
        peak_bound_leave(&bound, 10, i + 1000000, 20000 - i);
        peak_bound_freed(&bound, &flight, i, 1, 20000 - i);
        assert_in_range(bound.ghost_count, 0, PEAK_GHOSTS_MAX);
        assert_in_range(bound.step_count, 1, PEAK_STEPS_MAX);
    }
    peak_bound_freed(&bound, &flight, 2000000, 1, 5000);
    assert_int_equal(bound.ghost_count, 0);
}

// There are more steps than are kept, and some are merged: a block of a thread that was late all
// the time may have existed at the first of them.
static void steps_that_become_one_are_as_high_as_the_higher(void **state)
{
    (void)state;
    struct peak_bound bound = {0};
    struct peak_flight late = {0};
    const uint64_t top_bytes = (uint64_t)1 << 40;
    uint64_t height_bytes = top_bytes;
    peak_bound_allocated(&bound, &late, 1, top_bytes, top_bytes);
    for (uint64_t i = 0; i < (uint64_t)3 * PEAK_STEPS_MAX; i++) {
        height_bytes -= height_bytes / 64;
        peak_bound_joined(&bound, 2 + i, height_bytes);
        for (uint32_t k = 1; k < bound.step_count; k++) {
            assert_true(bound.steps[k].stamp > bound.steps[k - 1].stamp);
            assert_true(bound.steps[k].height_bytes < bound.steps[k - 1].height_bytes);
        }
    }
    assert_int_equal(bound.step_count, PEAK_STEPS_MAX);
    assert_true(bound.steps[PEAK_STEPS_MAX - 1].height_bytes >= height_bytes);
    peak_bound_allocated(&bound, &late, 1000, 5000, height_bytes + 5000);
    assert_int_equal(peak_bound_above(&bound, top_bytes), 5000);
}

// Threads follow each other on one stack: no two of their blocks exist at the same time.
static void a_thread_follows_the_one_that_had_its_stack(void **state)
{
    (void)state;
    struct peak_bound bound = {0};
    struct peak_flight threads[10] = {0};
    struct peak_flight other = {0};
    peak_bound_allocated(&bound, &other, 1, 1000, 1000);
    for (uint64_t i = 0; i < 10; i++) {
        if (i > 0) {
            const struct peak_flight before = threads[i - 1];
            peak_bound_landed(&bound, &threads[i - 1]);
            peak_bound_followed(&bound, threads + i, &before);
        }
        peak_bound_allocated(&bound, threads + i, 10 * i + 2, 500, 1500);
        peak_bound_freed(&bound, threads + i, 10 * i + 3, 500, 1000);
    }
    // its first thread may have begun with the process
    assert_int_equal(peak_bound_above(&bound, 1500), 0);
    assert_int_equal(bound.flight_bytes, 500);
}

// After its peak a program repeatedly fills and empties a tenth. Each block counts only for the
// steps since the thread's event before it, so the bound of the peak stays.
static void blocks_long_after_the_peak_do_not_widen_its_bound(void **state)
{
    (void)state;
    static struct peak_bound bound;
    struct peak_flight flights[2] = {0};
    const uint64_t top_bytes = 100 << 20;
    const uint64_t block_bytes = 4096;
    uint64_t stamp = 0;
    bound = (struct peak_bound){0};
    peak_bound_allocated(&bound, flights, ++stamp, top_bytes, top_bytes);
    peak_bound_allocated(&bound, flights + 1, ++stamp, 1, top_bytes + 1);
    peak_bound_freed(&bound, flights, ++stamp, top_bytes, 1);
    uint64_t live = 1;
    for (uint32_t round = 0; round < 20; round++) {
        for (; live < top_bytes / 10; live += block_bytes) {
            stamp++;
            peak_bound_allocated(&bound, flights + stamp % 2, stamp, block_bytes,
                                 live + block_bytes);
        }
        for (; live > block_bytes; live -= block_bytes) {
            stamp++;
            peak_bound_freed(&bound, flights + stamp % 2, stamp, block_bytes, live - block_bytes);
        }
    }
    // What each thread did next after the peak may have begun before it.
    assert_in_range(peak_bound_above(&bound, top_bytes + 1), 0, 2 * block_bytes);
}

// Its block may have existed while the others made the peak, however long it took until its stamp.
static void a_thread_may_be_without_a_processor_for_any_time(void **state)
{
    (void)state;
    struct peak_bound bound = {0};
    struct peak_flight late = {0};
    struct peak_flight other = {0};
    peak_bound_allocated(&bound, &late, 1, 10, 10);
    peak_bound_allocated(&bound, &other, 2, 1000, 1010);
    peak_bound_freed(&bound, &other, 3, 1000, 10);
    for (uint64_t stamp = 4; stamp < 100000; stamp += 2) {
        peak_bound_allocated(&bound, &other, stamp, 1, 11);
        peak_bound_freed(&bound, &other, stamp + 1, 1, 10);
    }
    peak_bound_allocated(&bound, &late, 100000, 500, 510);
    assert_int_equal(peak_bound_above(&bound, 1010), 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_may_be_late_by_one_block_each),
        cmocka_unit_test(blocks_without_stamps_may_come_later_than_they_count),
        cmocka_unit_test(an_early_block_takes_the_place_of_what_was_freed),
        cmocka_unit_test(what_was_freed_is_there_until_the_threads_next_event),
        cmocka_unit_test(what_comes_late_may_have_made_the_peak_too_high),
        cmocka_unit_test(who_was_found_dead_may_have_lived_until_then),
        cmocka_unit_test(only_flights_are_left_out_of_the_programs_order),
        cmocka_unit_test(steps_that_become_one_are_as_high_as_the_higher),
        cmocka_unit_test(an_early_block_is_early_until_its_thread_rested),
        cmocka_unit_test(ghosts_and_steps_are_bounded),
        cmocka_unit_test(a_thread_follows_the_one_that_had_its_stack),
        cmocka_unit_test(blocks_long_after_the_peak_do_not_widen_its_bound),
        cmocka_unit_test(a_thread_may_be_without_a_processor_for_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
