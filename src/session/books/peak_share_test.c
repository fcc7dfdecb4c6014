// SPDX-License-Identifier: MIT
// Shares of the peak, merged in random order and grouping, against a replay of all events.
#include "session/books/peak_share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/test_support/random_numbers.h"

enum {
    ROUNDS = 2000,
    ROWS = 4,
    THREADS = 5,
    EVENTS = 120,
    SHARES_MAX = EVENTS + ROWS * THREADS,
};

struct event {
    uint32_t row;
    uint32_t thread;
    uint32_t number; // that its thread had seen
    int64_t delta_bytes;
};

// Events whose threads see newer peaks at times of their own.
static uint32_t draw_events(struct event events[EVENTS], uint64_t *random)
{
    uint32_t seen[THREADS] = {0};
    uint32_t latest = 0;
    for (int i = 0; i < EVENTS; i++) {
        const uint64_t r = next_random(random);
        const uint32_t thread = (uint32_t)(r >> 8) % THREADS;
        latest += r % 4 == 0;
        if (r >> 60 < 8) {
            seen[thread] += (uint32_t)(r >> 16) % (latest - seen[thread] + 1);
        }
        events[i] = (struct event){.row = (uint32_t)(r >> 32) % ROWS,
                                   .thread = thread,
                                   .number = seen[thread],
                                   .delta_bytes = (int64_t)(r >> 40) % 2000 - 900};
    }
    return latest;
}

static int64_t replay(const struct event events[EVENTS], uint32_t row, uint32_t latest)
{
    int64_t bytes = 0;
    for (int i = 0; i < EVENTS; i++) {
        bytes += events[i].row == row && events[i].number < latest ? events[i].delta_bytes : 0;
    }
    return bytes;
}

// Let each thread collect the row's events in order, and cut its share off at random moments.
static uint32_t cut_shares(const struct event events[EVENTS],
                           uint32_t row,
                           struct peak_share shares[SHARES_MAX],
                           uint64_t *random)
{
    uint32_t count = 0;
    for (uint32_t thread = 0; thread < THREADS; thread++) {
        struct peak_share share = {0};
        for (int i = 0; i < EVENTS; i++) {
            if (events[i].row == row && events[i].thread == thread) {
                peak_share_add(&share, events[i].number, events[i].delta_bytes);
                if (next_random(random) % 4 == 0) {
                    shares[count++] = share;
                    share = (struct peak_share){0};
                }
            }
        }
        shares[count++] = share;
    }
    return count;
}

// Merge pairs of shares at random until one is left.
static struct peak_share merge_all(struct peak_share *shares, uint32_t count, uint64_t *random)
{
    while (count > 1) {
        const uint32_t i = (uint32_t)(next_random(random) >> 8) % count;
        const struct peak_share taken = shares[i];
        shares[i] = shares[--count];
        peak_share_merge(&shares[(uint32_t)(next_random(random) >> 8) % count], &taken);
    }
    return shares[0];
}

static void any_order_gives_the_bytes_before_the_latest_peak(void **state)
{
    (void)state;
    uint64_t random = 5;
    for (int round = 0; round < ROUNDS; round++) {
        struct event events[EVENTS];
        const uint32_t latest = draw_events(events, &random);
        for (uint32_t row = 0; row < ROWS; row++) {
            struct peak_share shares[SHARES_MAX];
            const uint32_t count = cut_shares(events, row, shares, &random);
            const struct peak_share merged = merge_all(shares, count, &random);
            assert_true(peak_share_at(&merged, latest) == replay(events, row, latest));
        }
    }
}

static void a_row_without_change_keeps_its_bytes(void **state)
{
    (void)state;
    struct peak_share share = {0};
    peak_share_add(&share, 3, 100);
    assert_int_equal(peak_share_at(&share, 3), 0); // it came after peak 3
    assert_int_equal(peak_share_at(&share, 4), 100);
    peak_share_add(&share, 4, -100);
    assert_int_equal(peak_share_at(&share, 4), 100);
    assert_int_equal(peak_share_at(&share, 5), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_gives_the_bytes_before_the_latest_peak),
        cmocka_unit_test(a_row_without_change_keeps_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
