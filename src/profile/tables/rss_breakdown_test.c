// SPDX-License-Identifier: MIT
// Tests of rss_breakdown: samples of several processes at different times, added up over time.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "profile/tables/rss_breakdown.h"
#include "recording/write/recording_builder.h"

static void expect_ok(enum err problem)
{
    assert_int_equal(problem, ERR_OK);
}

static void add_sample(struct recording_builder *b, uint64_t time_ms, uint32_t process, uint64_t n)
{
    struct rec_rss_sample sample = {.time_ms = time_ms,
                                    .process = process,
                                    .rss_bytes = n,
                                    .anonymous_bytes = n / 2,
                                    .file_bytes = n / 4,
                                    .minor_faults = n / 10};
    expect_ok(rss_samples_vec_push(&b->rss_samples, sample));
}

static void open_recording(struct recording *recording, struct profile **out)
{
    CLEANUP(recording_builder_release) struct recording_builder b = {0};
    uint32_t id;
    expect_ok(recording_builder_init(&b));
    expect_ok(recording_builder_process(&b, 100, "parent", &id));
    expect_ok(recording_builder_process(&b, 200, "child", &id));
    b.processes.items[0].end_ms = 900;
    b.processes.items[1].start_ms = 150;
    b.processes.items[1].end_ms = 400;
    b.processes.items[1].peak_rss_bytes = 700;
    b.meta.state = REC_STATE_FINISHED;
    b.slice_ms = 250;
    expect_ok(slices_vec_resize(&b.slices, 3));
    b.slices.items[0].live_bytes = 40;
    b.slices.items[1].live_bytes = 999;
    add_sample(&b, 100, 0, 1000);
    add_sample(&b, 200, 1, 400);
    add_sample(&b, 300, 0, 1200);
    add_sample(&b, 350, 1, 600);
    add_sample(&b, 400, 0, 1200); // the child's last sample
    add_sample(&b, 500, 0, 800);  // the child has ended
    add_sample(&b, 800, 0, 820);  // after the last slice
    expect_ok(recording_builder_finish(&b, recording));
    expect_ok(profile_from_recording(recording, NULL, NULL, out, NULL));
}

static void processes_count_until_they_end(void **state)
{
    (void)state;
    CLEANUP(recording_release) struct recording recording = {0};
    CLEANUP(profile_closep) struct profile *profile = NULL;
    CLEANUP(rss_breakdown_release) struct rss_breakdown rss_breakdown = {0};
    open_recording(&recording, &profile);
    expect_ok(rss_breakdown_build(profile, 0, &rss_breakdown));
    static const struct {
        uint64_t time_ms;
        uint64_t rss_bytes;
        bool has_live;
        uint64_t live_bytes;
        uint64_t other_anonymous_bytes;
    } wanted[] = {{100, 1000, true, 40, 460}, {200, 1400, true, 40, 660}, {300, 1600, true, 999, 0},
                  {350, 1800, true, 999, 0},  {400, 1800, true, 999, 0},  {500, 800, true, 0, 400},
                  {800, 820, false, 0, 0}};
    assert_int_equal(rss_breakdown.samples.len, ARRAY_LEN(wanted));
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        const struct rss_breakdown_sample *got = &rss_breakdown.samples.items[i];
        if (got->time_ms != wanted[i].time_ms || got->rss_bytes != wanted[i].rss_bytes ||
            got->has_live != wanted[i].has_live || got->live_bytes != wanted[i].live_bytes ||
            got->other_anonymous_bytes != wanted[i].other_anonymous_bytes) {
            fail_msg("sample %zu: %lu ms, %lu resident, %lu live, %lu other", i,
                     (unsigned long)got->time_ms, (unsigned long)got->rss_bytes,
                     (unsigned long)got->live_bytes, (unsigned long)got->other_anonymous_bytes);
        }
    }
    assert_int_equal(rss_breakdown.samples.items[3].file_bytes, 300 + 150);
    assert_int_equal(rss_breakdown.samples.items[5].minor_faults, 80);
    assert_int_equal(rss_breakdown.peak_rss_bytes, 1800);
    assert_int_equal(rss_breakdown.peak_rss_ms, 350);
}

// At 200 ms the file's pages begin to count for the parent, which gets 500 bytes; the child loses
// 400. At 300 ms 250 bytes of the child are doubted.
static void the_samples_of_a_moment_are_one_sum(void **state)
{
    (void)state;
    static const struct rec_rss_sample samples[] = {
        {.time_ms = 100, .rss_bytes = 500, .file_bytes = 300, .repeated_file_bytes = 300},
        {.time_ms = 100, .process = 1, .rss_bytes = 900, .file_bytes = 300},
        {.time_ms = 200, .rss_bytes = 1000, .file_bytes = 300},
        {.time_ms = 200,
         .process = 1,
         .rss_bytes = 500,
         .file_bytes = 300,
         .repeated_file_bytes = 300},
        {.time_ms = 300, .rss_bytes = 900, .file_bytes = 300},
        {.time_ms = 300,
         .process = 1,
         .rss_bytes = 600,
         .file_bytes = 300,
         .repeated_file_bytes = 300,
         .doubted_bytes = 250},
    };
    static const uint64_t sums[] = {1100, 1200, 1200};
    CLEANUP(recording_builder_release) struct recording_builder b = {0};
    CLEANUP(recording_release) struct recording recording = {0};
    CLEANUP(profile_closep) struct profile *profile = NULL;
    CLEANUP(rss_breakdown_release) struct rss_breakdown all = {0};
    CLEANUP(rss_breakdown_release) struct rss_breakdown one = {0};
    uint32_t id;
    expect_ok(recording_builder_init(&b));
    expect_ok(recording_builder_process(&b, 100, "parent", &id));
    expect_ok(recording_builder_process(&b, 200, "child", &id));
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        expect_ok(rss_samples_vec_push(&b.rss_samples, samples[i]));
    }
    expect_ok(recording_builder_finish(&b, &recording));
    expect_ok(profile_from_recording(&recording, NULL, NULL, &profile, NULL));
    expect_ok(rss_breakdown_build(profile, 0, &all));
    assert_int_equal(all.samples.len, ARRAY_LEN(sums));
    for (size_t i = 0; i < ARRAY_LEN(sums); i++) {
        assert_int_equal(all.samples.items[i].rss_bytes, sums[i]);
    }
    assert_int_equal(all.peak_rss_bytes, 1200);
    assert_int_equal(all.peak_rss_ms, 200);
    assert_int_equal(all.peak_rss_at_most, 1200 + 250);
    expect_ok(rss_breakdown_build(profile, 200, &one)); // its pages are surely in its own RSS
    assert_int_equal(one.peak_rss_bytes, 900);
    assert_int_equal(one.peak_rss_at_most, 900);
}

static void
add_snapshot(struct recording_builder *b, uint64_t time_ms, uint32_t process, uint32_t flags)
{
    const struct rec_memory_snapshot snapshot = {.time_ms = time_ms,
                                                 .process = process,
                                                 .flags = flags,
                                                 .rss_bytes = time_ms + 100 * (uint64_t)process,
                                                 .live_bytes = time_ms,
                                                 .file_bytes = 100 * (uint64_t)process};
    expect_ok(memory_snapshots_vec_push(&b->memory_snapshots, snapshot));
}

static void add_part(struct recording_builder *b, uint32_t snapshot, uint32_t kind, uint64_t bytes)
{
    const struct rec_part part = {.snapshot = snapshot,
                                  .kind = kind,
                                  .node = REC_NONE,
                                  .rss_bytes = bytes,
                                  .virtual_bytes = bytes};
    expect_ok(parts_vec_push(&b->parts, part));
}

static void open_snapshots(struct recording *recording, struct profile **out)
{
    CLEANUP(recording_builder_release) struct recording_builder b = {0};
    uint32_t id;
    expect_ok(recording_builder_init(&b));
    expect_ok(recording_builder_process(&b, 100, "parent", &id));
    expect_ok(recording_builder_process(&b, 200, "child", &id));
    b.meta.state = REC_STATE_FINISHED;
    b.meta.runtime_ms = 950;
    add_snapshot(&b, 300, 0, 0);
    add_snapshot(&b, 900, 0, REC_SNAPSHOT_PEAK | REC_SNAPSHOT_LAST | REC_SNAPSHOT_AT_EXIT);
    add_snapshot(&b, 900, 1, REC_SNAPSHOT_PEAK | REC_SNAPSHOT_LAST | REC_SNAPSHOT_ESTIMATED);
    add_part(&b, 1, REC_PART_LIVE, 400);
    add_part(&b, 1, REC_PART_LIVE, 500);
    add_part(&b, 2, REC_PART_FILE, 100);
    add_part(&b, 2, REC_PART_LIVE, 900);
    expect_ok(recording_builder_finish(&b, recording));
    expect_ok(profile_from_recording(recording, NULL, NULL, out, NULL));
}

static void snapshots_of_one_moment_are_one_split(void **state)
{
    (void)state;
    CLEANUP(recording_release) struct recording recording = {0};
    CLEANUP(profile_closep) struct profile *profile = NULL;
    CLEANUP(rss_breakdown_release) struct rss_breakdown rss_breakdown = {0};
    open_snapshots(&recording, &profile);
    expect_ok(rss_breakdown_build(profile, 0, &rss_breakdown));
    assert_int_equal(rss_breakdown.splits.len, 2);
    assert_int_equal(rss_breakdown.splits.items[0].parts.len, 0);
    const struct rss_breakdown_split *peak = rss_breakdown_peak(&rss_breakdown);
    assert_non_null(peak);
    assert_ptr_equal(peak, rss_breakdown_last(&rss_breakdown));
    assert_int_equal(peak->processes, 2);
    assert_int_equal(peak->rss_bytes, 900 + 900 + 100);
    assert_int_equal(peak->bytes[REC_PART_LIVE], 1800);
    assert_int_equal(peak->bytes[REC_PART_FILE], 100);
    assert_int_equal(rss_breakdown_split_age_ms(profile, peak), 50);
    assert_true(rss_breakdown_is_estimate(peak, REC_PART_LIVE)); // for one of the processes
    assert_false(rss_breakdown_is_estimate(peak, REC_PART_FILE));
    static const uint64_t sizes[] = {900, 500, 400, 100}; // by kind, largest first
    assert_int_equal(peak->parts.len, ARRAY_LEN(sizes));
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        assert_int_equal(peak->parts.items[i].rss_bytes, sizes[i]);
    }
}

static void each_figure_of_a_split_is_a_sum(void **state)
{
    (void)state;
#define KIND(kind, name)                                                            \
    {                                                                               \
        offsetof(struct rec_memory_snapshot, name),                                 \
            offsetof(struct rss_breakdown_split, bytes) + (kind) * sizeof(uint64_t) \
    }
#define SAME(name)                                                                             \
    {                                                                                          \
        offsetof(struct rec_memory_snapshot, name), offsetof(struct rss_breakdown_split, name) \
    }
    static const struct {
        size_t given;
        size_t sum;
    } figures[] = {
        KIND(REC_PART_LIVE, live_bytes),
        KIND(REC_PART_ROUNDING, rounding_bytes),
        KIND(REC_PART_KEPT, kept_bytes),
        KIND(REC_PART_MAPPED, mapped_bytes),
        KIND(REC_PART_STACK, stack_bytes),
        KIND(REC_PART_FILE, file_bytes),
        KIND(REC_PART_SHARED, shared_bytes),
        KIND(REC_PART_OWN, own_bytes),
        KIND(REC_PART_REST, rest_bytes),
        SAME(rss_bytes),
        SAME(swap_bytes),
        SAME(requested_bytes),
        SAME(empty_page_bytes),
        SAME(sparse_page_bytes),
        SAME(sparse_block_bytes),
    };
#undef KIND
#undef SAME
    CLEANUP(recording_builder_release) struct recording_builder b = {0};
    CLEANUP(recording_release) struct recording recording = {0};
    CLEANUP(profile_closep) struct profile *profile = NULL;
    CLEANUP(rss_breakdown_release) struct rss_breakdown rss_breakdown = {0};
    expect_ok(recording_builder_init(&b));
    for (uint32_t process = 0; process < 2; process++) {
        struct rec_memory_snapshot snapshot = {.process = process,
                                               .flags = REC_SNAPSHOT_PEAK | REC_SNAPSHOT_LAST};
        uint32_t id;
        expect_ok(recording_builder_process(&b, 100 + process, "program", &id));
        for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
            const uint64_t value = (process == 0 ? 1000 : 30) + i;
            memcpy((char *)&snapshot + figures[i].given, &value, sizeof(value));
        }
        expect_ok(memory_snapshots_vec_push(&b.memory_snapshots, snapshot));
    }
    expect_ok(recording_builder_finish(&b, &recording));
    expect_ok(profile_from_recording(&recording, NULL, NULL, &profile, NULL));
    expect_ok(rss_breakdown_build(profile, 0, &rss_breakdown));
    const struct rss_breakdown_split *split = rss_breakdown_peak(&rss_breakdown);
    assert_non_null(split);
    for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
        uint64_t sum;
        memcpy(&sum, (const char *)split + figures[i].sum, sizeof(sum));
        print_message("figure %zu\n", i);
        assert_int_equal(sum, 1030 + 2 * i);
    }
}

static void a_split_of_one_process_is_its_own(void **state)
{
    (void)state;
    CLEANUP(recording_release) struct recording recording = {0};
    CLEANUP(profile_closep) struct profile *profile = NULL;
    CLEANUP(rss_breakdown_release) struct rss_breakdown rss_breakdown = {0};
    open_snapshots(&recording, &profile);
    expect_ok(rss_breakdown_build(profile, 200, &rss_breakdown));
    assert_int_equal(rss_breakdown.splits.len, 1);
    const struct rss_breakdown_split *peak = rss_breakdown_peak(&rss_breakdown);
    assert_int_equal(peak->rss_bytes, 1000);
    assert_int_equal(peak->parts.len, 2);
    assert_int_equal(peak->parts.items[0].process, 1);
}

static void one_process_has_its_own_rss_breakdown(void **state)
{
    (void)state;
    CLEANUP(recording_release) struct recording recording = {0};
    CLEANUP(profile_closep) struct profile *profile = NULL;
    CLEANUP(rss_breakdown_release) struct rss_breakdown rss_breakdown = {0};
    open_recording(&recording, &profile);
    expect_ok(rss_breakdown_build(profile, 200, &rss_breakdown));
    assert_int_equal(rss_breakdown.samples.len, 2);
    assert_int_equal(rss_breakdown.samples.items[1].rss_bytes, 600);
    assert_false(rss_breakdown.samples.items[1].has_live); // known for all processes together
    assert_int_equal(rss_breakdown.peak_rss_bytes, 700);   // the process's own figure
}

// The kernel may know a higher peak than any sample; another process's peak does not count.
static void a_peak_that_no_sample_saw_is_its_own_processes(void **state)
{
    (void)state;
    CLEANUP(recording_release) struct recording recording = {0};
    CLEANUP(profile_closep) struct profile *profile = NULL;
    open_recording(&recording, &profile);
    recording.processes[1].peak_rss_bytes = 5000;
    const uint64_t end_ms = recording.processes[1].end_ms;
    assert_int_not_equal(end_ms, 0);
    const struct {
        uint32_t pid;
        uint64_t peak_bytes;
        bool is_before_the_end;
    } cases[] = {{100, 1200, false}, {200, 5000, true}, {0, 5000, true}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(rss_breakdown_release) struct rss_breakdown rss_breakdown = {0};
        expect_ok(rss_breakdown_build(profile, cases[i].pid, &rss_breakdown));
        assert_int_equal(rss_breakdown.peak_rss_bytes, cases[i].peak_bytes);
        assert_int_equal(rss_breakdown.peak_rss_ms == end_ms, cases[i].is_before_the_end);
    }
}

// Parts of one path are one part, whatever their processes; those beyond the limit are summed up.
static void parts_of_one_path_are_merged(void **state)
{
    (void)state;
    CLEANUP(recording_release) struct recording recording = {0};
    CLEANUP(profile_closep) struct profile *profile = NULL;
    open_snapshots(&recording, &profile);
    struct rss_breakdown_part parts[] = {
        {REC_PART_FILE, 0, REC_NONE, 1, 1, false, 70, 50, 0, 0, 0, 0, 0},
        {REC_PART_FILE, 0, REC_NONE, 2, 2, false, 90, 40, 1, 0, 0, 0, 0},
        {REC_PART_FILE, 1, REC_NONE, 2, 1, true, 20, 15, 2, 0, 0, 0, 0},
        {REC_PART_FILE, 1, REC_NONE, 3, 1, false, 20, 7, 0, 0, 0, 0, 0},
        {REC_PART_FILE, 1, REC_NONE, 4, 1, false, 20, 0, 9, 0, 0, 0, 0}, // nothing resident
        {REC_PART_FILE, 1, REC_NONE, 5, 1, false, 20, 3, 0, 0, 0, 0, 0},
        {REC_PART_SHARED, 1, REC_NONE, 2, 1, false, 80, 80, 0, 0, 0, 0, 0},
    };
    const struct rss_breakdown_split split = {.parts = {.items = parts, .len = ARRAY_LEN(parts)}};
    static const struct {
        size_t limit;
        uint64_t shown[4];
        struct rss_breakdown_rest rest;
    } cases[] = {
        {0, {0}, {4, 115}},          {1, {55}, {3, 60}},          {3, {55, 50, 7}, {1, 3}},
        {4, {55, 50, 7, 3}, {0, 0}}, {9, {55, 50, 7, 3}, {0, 0}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(rss_breakdown_part_vec_release) struct rss_breakdown_part_vec top = {0};
        struct rss_breakdown_rest rest;
        expect_ok(
            rss_breakdown_top_parts(profile, &split, REC_PART_FILE, cases[i].limit, &top, &rest));
        print_message("limit %zu: %zu parts, %zu more\n", cases[i].limit, top.len, rest.count);
        assert_int_equal(top.len, cases[i].limit < 4 ? cases[i].limit : 4);
        for (size_t k = 0; k < top.len; k++) {
            assert_int_equal(top.items[k].rss_bytes, cases[i].shown[k]);
        }
        assert_int_equal(rest.count, cases[i].rest.count);
        assert_int_equal(rest.rss_bytes, cases[i].rest.rss_bytes);
    }
    CLEANUP(rss_breakdown_part_vec_release) struct rss_breakdown_part_vec top = {0};
    struct rss_breakdown_rest rest;
    expect_ok(rss_breakdown_top_parts(profile, &split, REC_PART_FILE, 1, &top, &rest));
    assert_int_equal(top.items[0].areas, 3);
    assert_int_equal(top.items[0].virtual_bytes, 110);
    assert_int_equal(top.items[0].swap_bytes, 3);
    assert_true(top.items[0].is_estimate);
}

// A file of another tool may have only RSS. Missing figures are unknown, not 0. A snapshot below 95
// % of the highest RSS does not show the peak.
static void what_nobody_said_is_unknown(void **state)
{
    (void)state;
    struct rss_breakdown_sample samples[2] = {{.rss_bytes = 100}, {.rss_bytes = 200}};
    const struct rss_breakdown rss_breakdown = {.samples = {.items = samples, .len = 2},
                                                .peak_rss_bytes = 200};
    struct rss_breakdown_knows knows = rss_breakdown_knows(&rss_breakdown);
    assert_false(knows.kinds || knows.faults || knows.areas);
    samples[1].file_bytes = 1;
    knows = rss_breakdown_knows(&rss_breakdown);
    assert_true(knows.kinds && !knows.faults && !knows.areas);
    samples[0].major_faults = 1;
    samples[1].data_bytes = 1;
    knows = rss_breakdown_knows(&rss_breakdown);
    assert_true(knows.kinds && knows.faults && knows.areas);
    assert_true(
        rss_breakdown_is_of_peak(&rss_breakdown, &(struct rss_breakdown_split){.rss_bytes = 190}));
    assert_false(
        rss_breakdown_is_of_peak(&rss_breakdown, &(struct rss_breakdown_split){.rss_bytes = 189}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_count_until_they_end),
        cmocka_unit_test(the_samples_of_a_moment_are_one_sum),
        cmocka_unit_test(one_process_has_its_own_rss_breakdown),
        cmocka_unit_test(a_peak_that_no_sample_saw_is_its_own_processes),
        cmocka_unit_test(snapshots_of_one_moment_are_one_split),
        cmocka_unit_test(each_figure_of_a_split_is_a_sum),
        cmocka_unit_test(a_split_of_one_process_is_its_own),
        cmocka_unit_test(parts_of_one_path_are_merged),
        cmocka_unit_test(what_nobody_said_is_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
