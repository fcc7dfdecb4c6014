// SPDX-License-Identifier: MIT
// memory_snapshots: which moments it keeps, that their parts stay with them, and that all is
// bounded.
#include "recorder/memory/memory_snapshots.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/compiler.h"

enum {
    PROCESSES = 3,
};

// Add a moment of PROCESSES snapshots of rss/3 each, with two parts for each.
static void
add(struct memory_snapshots *snapshots, uint64_t time_ms, uint64_t rss_bytes, bool was_asked)
{
    CLEANUP(memory_moment_release)
    struct memory_moment moment = {.time_ms = time_ms, .rss_bytes = rss_bytes};
    for (uint32_t i = 0; i < PROCESSES; i++) {
        const struct rec_memory_snapshot snapshot = {
            .time_ms = time_ms, .process = i, .rss_bytes = rss_bytes / PROCESSES};
        assert_int_equal(rec_memory_snapshot_vec_push(&moment.memory_snapshots, snapshot), ERR_OK);
        for (uint32_t kind = REC_PART_LIVE; kind <= REC_PART_ROUNDING; kind++) {
            const struct rec_part part = {.snapshot = i, .kind = kind, .rss_bytes = time_ms + i};
            assert_int_equal(rec_part_vec_push(&moment.tables.parts, part), ERR_OK);
        }
    }
    assert_int_equal(memory_snapshots_add(snapshots, &moment, was_asked, 0), ERR_OK);
}

struct collected {
    struct rec_memory_snapshot_vec memory_snapshots;
    struct rss_tables tables;
};

static void collected_release(struct collected *c)
{
    rec_memory_snapshot_vec_release(&c->memory_snapshots);
    rss_tables_release(&c->tables);
}

// Collect, and check the invariants.
static void collect(const struct memory_snapshots *snapshots, struct collected *c)
{
    assert_int_equal(memory_snapshots_collect(snapshots, &c->memory_snapshots, &c->tables), ERR_OK);
    for (size_t i = 1; i < c->memory_snapshots.len; i++) {
        const struct rec_memory_snapshot *snapshot = c->memory_snapshots.items + i;
        assert_true(snapshot[-1].time_ms < snapshot->time_ms ||
                    (snapshot[-1].time_ms == snapshot->time_ms &&
                     snapshot[-1].process < snapshot->process));
    }
    for (size_t i = 0; i < c->tables.parts.len; i++) {
        const struct rec_part *part = c->tables.parts.items + i;
        const struct rec_memory_snapshot *snapshot = c->memory_snapshots.items + part->snapshot;
        assert_int_equal(part->rss_bytes, snapshot->time_ms + snapshot->process);
        assert_true(i == 0 || part[-1].snapshot <= part->snapshot);
        assert_true(
            (snapshot->flags & (REC_SNAPSHOT_PEAK | REC_SNAPSHOT_LAST | REC_SNAPSHOT_ASKED)) != 0);
    }
}

static void the_highest_the_last_and_the_wanted_keep_their_parts(void **state)
{
    (void)state;
    CLEANUP(memory_snapshots_release) struct memory_snapshots snapshots = {0};
    CLEANUP(collected_release) struct collected c = {0};
    add(&snapshots, 10, 300, false);
    add(&snapshots, 20, 900, false);
    add(&snapshots, 30, 600, true);
    add(&snapshots, 40, 600, false);
    add(&snapshots, 50, 300, false);
    collect(&snapshots, &c);
    assert_int_equal(c.memory_snapshots.len, 5 * PROCESSES);
    assert_int_equal(c.tables.parts.len, 3 * PROCESSES * 2);
    static const uint32_t flags[] = {0, REC_SNAPSHOT_PEAK, REC_SNAPSHOT_ASKED, 0,
                                     REC_SNAPSHOT_LAST};
    for (size_t i = 0; i < c.memory_snapshots.len; i++) {
        assert_int_equal(c.memory_snapshots.items[i].flags, flags[i / PROCESSES]);
    }
}

static void one_moment_may_be_all_of_it(void **state)
{
    (void)state;
    CLEANUP(memory_snapshots_release) struct memory_snapshots snapshots = {0};
    CLEANUP(collected_release) struct collected c = {0};
    add(&snapshots, 0, 300, true);
    collect(&snapshots, &c);
    assert_int_equal(c.memory_snapshots.len, PROCESSES);
    assert_int_equal(c.tables.parts.len, PROCESSES * 2);
    assert_int_equal(c.memory_snapshots.items[0].flags,
                     REC_SNAPSHOT_PEAK | REC_SNAPSHOT_LAST | REC_SNAPSHOT_ASKED);
}

static void a_long_run_keeps_no_more(void **state)
{
    (void)state;
    CLEANUP(memory_snapshots_release) struct memory_snapshots snapshots = {0};
    CLEANUP(collected_release) struct collected c = {0};
    for (uint64_t i = 0; i < 20000; i++) {
        add(&snapshots, i, i == 777 ? 99999 : 300 + i % 100, i % 1000 == 0);
    }
    collect(&snapshots, &c);
    assert_true(c.memory_snapshots.len <=
                SNAPSHOTS_SERIES_MAX + (2 + SNAPSHOTS_ASKED_MAX + 1) * PROCESSES);
    assert_true(c.memory_snapshots.len > SNAPSHOTS_SERIES_MAX / 3);
    assert_int_equal(c.tables.parts.len, (2 + SNAPSHOTS_ASKED_MAX) * PROCESSES * 2);
    size_t peaks = 0;
    for (size_t i = 0; i < c.memory_snapshots.len; i++) {
        if ((c.memory_snapshots.items[i].flags & REC_SNAPSHOT_PEAK) != 0) {
            assert_int_equal(c.memory_snapshots.items[i].time_ms, 777);
            peaks++;
        }
    }
    assert_int_equal(peaks, PROCESSES);
}

static void snapshots_have_a_budget_that_growth_overrides(void **state)
{
    (void)state;
    CLEANUP(memory_snapshots_release) struct memory_snapshots snapshots = {0};
    assert_true(memory_snapshots_are_due(&snapshots, 0, 1));
    struct memory_moment moment = {.time_ms = 100, .rss_bytes = 800};
    assert_int_equal(memory_snapshots_add(&snapshots, &moment, false, 40000000), ERR_OK); // 40 ms
    assert_false(memory_snapshots_are_due(&snapshots, 2099, 1200));
    assert_true(memory_snapshots_are_due(&snapshots, 101, 1201)); // half as much again
    assert_true(memory_snapshots_are_due(&snapshots, 2100, 1));   // 50 times as long
    moment = (struct memory_moment){.time_ms = 2100, .rss_bytes = 1};
    assert_int_equal(memory_snapshots_add(&snapshots, &moment, false, 1000), ERR_OK);
    assert_false(memory_snapshots_are_due(&snapshots, 3099, 1));
    assert_true(memory_snapshots_are_due(&snapshots, 3100, 1)); // a cheap one: each second
    moment = (struct memory_moment){.time_ms = 4000, .rss_bytes = 1600};
    assert_int_equal(memory_snapshots_add(&snapshots, &moment, false, 1000000), ERR_OK); // 1 ms
    assert_false(memory_snapshots_are_due(&snapshots, 4049, 2400));
    assert_false(memory_snapshots_are_due(&snapshots, 4050, 1680));
    assert_true(
        // a twentieth more, and its cost is compensated
        memory_snapshots_are_due(&snapshots, 4050, 1681));
}

static uint64_t peak_flagged_ms(const struct memory_snapshots *snapshots)
{
    CLEANUP(collected_release) struct collected c = {0};
    collect(snapshots, &c);
    for (size_t i = 0; i < c.memory_snapshots.len; i++) {
        if ((c.memory_snapshots.items[i].flags & REC_SNAPSHOT_PEAK) != 0) {
            return c.memory_snapshots.items[i].time_ms;
        }
    }
    return UINT64_MAX;
}

static void a_doubted_peak_makes_room_for_one_of_nearly_its_size(void **state)
{
    (void)state;
    CLEANUP(memory_snapshots_release) struct memory_snapshots snapshots = {0};
    add(&snapshots, 10, 600, false);
    add(&snapshots, 20, 2100, false);
    assert_false(memory_snapshots_are_due(&snapshots, 21, 2100));
    memory_snapshots_doubt(&snapshots, false);
    assert_true(memory_snapshots_are_due(&snapshots, 21, 2001));
    assert_false(memory_snapshots_are_due(&snapshots, 21, 2000));
    add(&snapshots, 30, 1998, false); // a twentieth lower
    assert_int_equal(peak_flagged_ms(&snapshots), 20);
    add(&snapshots, 40, 2001, false);
    assert_int_equal(peak_flagged_ms(&snapshots), 40);
    assert_int_equal(snapshots.series.len, 3 * PROCESSES); // without the doubted one
    memory_snapshots_doubt(&snapshots, false);
    add(&snapshots, 50, 1998, false); // doubts do not add up
    assert_int_equal(peak_flagged_ms(&snapshots), 40);
    add(&snapshots, 60, 2100, false);
    assert_int_equal(peak_flagged_ms(&snapshots), 60);
    add(&snapshots, 70, 2001, false); // which has no doubt
    assert_int_equal(peak_flagged_ms(&snapshots), 60);
}

static void a_moment_in_which_the_heap_changed_is_an_estimate(void **state)
{
    (void)state;
    CLEANUP(memory_snapshots_release) struct memory_snapshots snapshots = {0};
    CLEANUP(collected_release) struct collected c = {0};
    add(&snapshots, 10, 900, false);
    add(&snapshots, 20, 600, true);
    memory_snapshots_doubt(&snapshots, true); // the last, not the highest
    assert_false(snapshots.doubts_peak);
    add(&snapshots, 30, 300, false);
    memory_snapshots_doubt(&snapshots, false);
    collect(&snapshots, &c);
    assert_int_equal(c.memory_snapshots.len, 3 * PROCESSES);
    for (size_t i = 0; i < c.memory_snapshots.len; i++) {
        const struct rec_memory_snapshot *snapshot = c.memory_snapshots.items + i;
        assert_int_equal((snapshot->flags & REC_SNAPSHOT_ESTIMATED) != 0, snapshot->time_ms == 20);
    }
    assert_int_equal(snapshots.asked[0].memory_snapshots.items[0].flags, REC_SNAPSHOT_ESTIMATED);
}

static void thrift_makes_snapshots_rarer(void **state)
{
    (void)state;
    CLEANUP(memory_snapshots_release) struct memory_snapshots snapshots = {.thrift_bits = 2};
    struct memory_moment moment = {.time_ms = 100, .rss_bytes = 800};
    assert_int_equal(memory_snapshots_add(&snapshots, &moment, false, 40000000), ERR_OK); // 40 ms
    assert_false(memory_snapshots_are_due(&snapshots, 8099, 1200));
    assert_true(memory_snapshots_are_due(&snapshots, 8100, 1));   // 200 times as long
    assert_true(memory_snapshots_are_due(&snapshots, 101, 1201)); // half as much again
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_highest_the_last_and_the_wanted_keep_their_parts),
        cmocka_unit_test(one_moment_may_be_all_of_it),
        cmocka_unit_test(a_long_run_keeps_no_more),
        cmocka_unit_test(snapshots_have_a_budget_that_growth_overrides),
        cmocka_unit_test(a_doubted_peak_makes_room_for_one_of_nearly_its_size),
        cmocka_unit_test(a_moment_in_which_the_heap_changed_is_an_estimate),
        cmocka_unit_test(thrift_makes_snapshots_rarer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
