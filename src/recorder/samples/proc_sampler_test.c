// SPDX-License-Identifier: MIT
// Glances and samples of resident memory: what a long run stores, by a clock that the test sets.
// /proc describes this process itself.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/open_files.h"
#include "recorder/samples/proc_sampler.h"

enum {
    PEAK_MS = 123450,
};
#define MB ((uint64_t)1 << 20)

// Store one moment, as a round of samples would.
static void sample(struct proc_sampler *s, struct aggregator_process *process, uint64_t now_ms)
{
    struct proc_reading reading = {.pid = getpid(), .is_brief = true};
    proc_sampler_begin_round(s, now_ms);
    proc_reading_take(&reading);
    assert_true(reading.sample.rss_bytes > 0);
    proc_sampler_put(s, &reading, process, now_ms);
    assert_true(proc_sampler_settle(s) > 0);
    s->samples.items[s->samples.len - 1].rss_bytes = 10 * MB;
    proc_sampler_end_round(s, now_ms, 0);
}

// A tenth of a second above all others, in ten minutes.
static void no_peak_between_two_samples_is_missed(void **state)
{
    (void)state;
    CLEANUP(proc_sampler_release) struct proc_sampler s;
    struct aggregator_process process = {.index = 3};
    uint64_t longest_ms = 0;
    uint64_t glanced_ms = 0;
    proc_sampler_init(&s);
    for (uint64_t now_ms = 0; now_ms < 600000; now_ms += 10) {
        if (proc_sampler_glance_due(&s, now_ms)) {
            const bool is_peak = now_ms >= PEAK_MS && now_ms < PEAK_MS + 60;
            proc_sampler_note_glance(&s, &process, now_ms, is_peak ? 99 * MB : 10 * MB, 4 * MB);
            assert_int_equal(proc_sampler_end_glances(&s, now_ms, 0), (is_peak ? 99 : 10) * MB);
            longest_ms = now_ms - glanced_ms > longest_ms ? now_ms - glanced_ms : longest_ms;
            glanced_ms = now_ms;
        }
        if (proc_sampler_due(&s, now_ms)) {
            sample(&s, &process, now_ms);
        }
    }
    assert_true(longest_ms <= 100); // ten a second in a run of any length
    assert_true(s.samples.len <= PROC_SAMPLER_MAX_SAMPLES);
    size_t peaks = 0;
    for (size_t i = 0; i < s.samples.len; i++) {
        const struct rec_rss_sample *at = &s.samples.items[i];
        assert_true(i == 0 || at[-1].time_ms < at->time_ms);
        if (at->rss_bytes == 99 * MB) {
            peaks++;
            assert_in_range(at->time_ms, PEAK_MS, PEAK_MS + 60);
            assert_int_equal(at->anonymous_bytes, 95 * MB);
            assert_int_equal(at->file_bytes + at->shmem_bytes, 4 * MB);
            assert_int_equal(at->process, 3);
            assert_true(at->minor_faults > 0); // of the previous sample
        }
    }
    assert_int_equal(peaks, 1);
}

// Glance, and sample, when that is due. Return the number of samples.
static unsigned look(struct proc_sampler *s,
                     struct aggregator_process *process,
                     uint64_t now_ms,
                     uint64_t rss_bytes,
                     uint64_t *glances)
{
    unsigned samples = 0;
    if (proc_sampler_glance_due(s, now_ms)) {
        proc_sampler_note_glance(s, process, now_ms, rss_bytes, 4 * MB);
        (void)proc_sampler_end_glances(s, now_ms, 0);
        *glances += 1;
    }
    if (proc_sampler_due(s, now_ms)) {
        sample(s, process, now_ms);
        samples++;
    }
    return samples;
}

// A minute of rest; then the program touches memory without an allocation; then it goes on.
static void a_rest_is_quiet_until_memory_moves(void **state)
{
    (void)state;
    CLEANUP(proc_sampler_release) struct proc_sampler s;
    struct aggregator_process process = {.index = 3};
    uint64_t glances = 0;
    uint64_t samples = 0;
    uint64_t now_ms = 0;
    proc_sampler_init(&s);
    for (; now_ms < 1000; now_ms += 10) {
        (void)look(&s, &process, now_ms, 10 * MB, &glances);
    }
    proc_sampler_set_rest(&s, true, now_ms);
    for (glances = 0; now_ms < 61000; now_ms += 10) {
        samples += look(&s, &process, now_ms, 10 * MB + (now_ms & 1024), &glances);
    }
    assert_in_range(glances, 59, 62);
    assert_in_range(samples, 1, 3);
    for (; now_ms < 64000; now_ms += 10) { // it grows to 19 MB in three seconds
        const uint64_t rss_bytes = 10 * MB + (now_ms - 61000) * 3072;
        (void)look(&s, &process, now_ms, rss_bytes, &glances);
        if (now_ms >= 62100) { // noticed a second later, and then as good as ever
            const struct rec_rss_sample *last = &s.samples.items[s.samples.len - 1];
            assert_true(last->time_ms + 210 >= now_ms);
        }
    }
    proc_sampler_set_rest(&s, true, now_ms);
    for (glances = 0; now_ms < 74000; now_ms += 10) {
        (void)look(&s, &process, now_ms, 19 * MB, &glances);
    }
    assert_in_range(glances, 26, 32); // twenty in the first second
    proc_sampler_set_rest(&s, false, now_ms);
    assert_true(proc_sampler_due(&s, now_ms));
    assert_true(proc_sampler_glance_due(&s, now_ms + PROC_SAMPLER_GLANCE_MS));
}

// The first process touches a segment that the second one has already: a glance cannot know.
static void shared_pages_that_may_be_repeated_make_samples_due(void **state)
{
    (void)state;
    static const struct {
        uint64_t shared_mb; // of the first process
        uint64_t other_mb;  // of the second one, which repeats some; 0: there is none
        uint64_t spent_ns;  // by the samples before
        bool is_due;
    } cases[] = {
        {.shared_mb = 4, .other_mb = 4}, // as before
        {.shared_mb = 8, .other_mb = 8}, // a little more
        {.shared_mb = 40, .other_mb = 4, .is_due = true},
        {.shared_mb = 4, .other_mb = 40, .is_due = true},
        {.shared_mb = 40},
        {.shared_mb = 40, .other_mb = 40, .spent_ns = 1000000},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(proc_sampler_release) struct proc_sampler s;
        struct aggregator_process first = {
            .latest_sample = {.time_ms = 100, .rss_bytes = 60 * MB, .file_bytes = 4 * MB}};
        const struct aggregator_process second = {.index = 1,
                                                  .latest_sample = {.time_ms = 100,
                                                                    .rss_bytes = 60 * MB,
                                                                    .file_bytes = 4 * MB,
                                                                    .repeated_file_bytes = 4 * MB}};
        proc_sampler_init(&s);
        proc_sampler_end_round(&s, 100, cases[i].spent_ns);
        proc_sampler_note_glance(&s, &first, 150, 100 * MB, cases[i].shared_mb * MB);
        if (cases[i].other_mb > 0) {
            proc_sampler_note_glance(&s, &second, 150, 100 * MB, cases[i].other_mb * MB);
        }
        (void)proc_sampler_end_glances(&s, 150, 0);
        assert_int_equal(proc_sampler_due(&s, 150), cases[i].is_due);
    }
}

enum {
    TOUCHING = 4, // processes
};

// Each has 3 MB of its own, and a file of 2 MB that all have.
static void set_up_touching(struct proc_sampler *s, struct aggregator_process processes[TOUCHING])
{
    proc_sampler_init(s);
    for (uint32_t i = 0; i < TOUCHING; i++) {
        processes[i] = (struct aggregator_process){
            .index = i,
            .glanced_shared_bytes = 2 * MB,
            .latest_sample = {.time_ms = 100,
                              .process = i,
                              .rss_bytes = 5 * MB,
                              .anonymous_bytes = 3 * MB,
                              .file_bytes = 2 * MB,
                              .repeated_file_bytes = i == 0 ? 0 : 2 * MB}};
    }
}

// Glance at all: each has touched the same segment. Return the sum.
static uint64_t touch_and_glance(struct proc_sampler *s,
                                 struct aggregator_process processes[TOUCHING],
                                 uint64_t now_ms,
                                 uint64_t segment_bytes)
{
    for (size_t i = 0; i < TOUCHING; i++) {
        proc_sampler_note_glance(s, processes + i, now_ms, 5 * MB + segment_bytes,
                                 2 * MB + segment_bytes);
    }
    return proc_sampler_end_glances(s, now_ms, 0);
}

// Samples of the first `count`. Each segment was touched when the ones before were read if it is
// late, else before all. Return the sum.
static uint64_t sample_all(struct proc_sampler *s,
                           struct aggregator_process processes[TOUCHING],
                           size_t count,
                           uint64_t segment_bytes,
                           bool is_late)
{
    proc_sampler_begin_round(s, 200);
    for (size_t i = 0; i < count; i++) {
        const struct proc_reading reading = {.sample = {.rss_bytes = 5 * MB + segment_bytes,
                                                        .anonymous_bytes = 3 * MB,
                                                        .file_bytes = 2 * MB,
                                                        .shmem_bytes = segment_bytes},
                                             .proportional_anonymous_bytes = 3 * MB,
                                             .proportional_file_bytes = 2 * MB / count,
                                             .proportional_shmem_bytes =
                                                 segment_bytes / (is_late ? i + 1 : count)};
        processes[i].glanced_shared_bytes = 2 * MB + (is_late ? 0 : segment_bytes);
        proc_sampler_put(s, &reading, processes + i, 200);
    }
    const uint64_t sum = proc_sampler_settle(s);
    proc_sampler_end_round(s, 200, 0);
    return sum;
}

// Return what is doubted of the samples at a time, and their sum.
static uint64_t doubted_at(const struct rss_sample_vec *samples, uint64_t time_ms, uint64_t *sum)
{
    uint64_t doubted_bytes = 0;
    *sum = 0;
    for (size_t i = 0; i < samples->len; i++) {
        if (samples->items[i].time_ms == time_ms) {
            doubted_bytes += samples->items[i].doubted_bytes;
            *sum += rec_rss_sample_counted(samples->items + i);
        }
    }
    return doubted_bytes;
}

// All touch the same 64 MB between two samples. It counts once; if no page were the same, they
// would have three times as much besides.
static void a_glance_counts_what_one_of_them_must_have(void **state)
{
    (void)state;
    CLEANUP(proc_sampler_release) struct proc_sampler s;
    struct aggregator_process processes[TOUCHING];
    const uint64_t wanted = 3 * MB * TOUCHING + 66 * MB;
    uint64_t sum;
    set_up_touching(&s, processes);
    assert_int_equal(touch_and_glance(&s, processes, 150, 64 * MB), wanted);
    assert_int_equal(s.highest.rss_bytes, wanted);
    assert_int_equal(doubted_at(&s.highest.samples, 150, &sum), 64 * MB * (TOUCHING - 1));
    assert_int_equal(sum, wanted);
    assert_true(proc_sampler_due(&s, 150)); // it says more
}

// They touch them while samples are taken, each when the one before it was read: the first one is
// read as if it were alone, the second one with a half, and so on.
static void samples_of_pages_that_come_meanwhile_count_once(void **state)
{
    (void)state;
    CLEANUP(proc_sampler_release) struct proc_sampler s;
    struct aggregator_process processes[TOUCHING];
    const uint64_t wanted = 3 * MB * TOUCHING + 66 * MB;
    uint64_t sum;
    set_up_touching(&s, processes);
    assert_int_equal(sample_all(&s, processes, TOUCHING, 64 * MB, true), wanted);
    const uint64_t doubted_bytes = doubted_at(&s.samples, 200, &sum);
    assert_int_equal(sum, wanted);
    assert_in_range(doubted_bytes, 64 * MB, 64 * MB * (TOUCHING - 1)); // 1 + 1/2 + 1/3 + 1/4
    (void)touch_and_glance(&s, processes, 250, 64 * MB);
    assert_true(proc_sampler_due(&s, 250)); // although nothing has come since
}

// Samples end the doubt about the glance before, but for what processes have lost since then.
static void the_next_samples_end_a_doubt(void **state)
{
    (void)state;
    static const struct {
        uint64_t segment_mb; // when samples are taken
        size_t count;        // of processes then
        uint64_t doubted_mb; // wanted, of the glance
    } cases[] = {{64, TOUCHING, 0},
                 {80, TOUCHING, 80 - 64},
                 {63, TOUCHING, 63 + TOUCHING - 64},
                 {64, TOUCHING - 1, 66},
                 {1, TOUCHING, 3 + TOUCHING * 63 - 66}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(proc_sampler_release) struct proc_sampler s;
        struct aggregator_process processes[TOUCHING];
        uint64_t sum;
        set_up_touching(&s, processes);
        (void)touch_and_glance(&s, processes, 150, 64 * MB);
        (void)sample_all(&s, processes, cases[i].count, cases[i].segment_mb * MB, false);
        assert_int_equal(doubted_at(&s.samples, 150, &sum), cases[i].doubted_mb * MB);
        assert_int_equal(sum, 3 * MB * TOUCHING + 66 * MB);
        assert_int_equal(doubted_at(&s.samples, 200, &sum), 0);
    }
}

// Store one moment of two processes.
static void store(struct proc_sampler *s, uint64_t now_ms, uint64_t first_mb, uint64_t second_mb)
{
    const uint64_t sizes_mb[] = {first_mb, second_mb};
    for (uint32_t i = 0; i < 2; i++) {
        const struct rec_rss_sample one = {
            .time_ms = now_ms, .process = i, .rss_bytes = sizes_mb[i] * MB};
        assert_int_equal(rss_sample_vec_push(&s->samples, one), ERR_OK);
    }
    proc_sampler_end_round(s, now_ms, 0);
}

// The highest sample of one process is in a moment that is low as a whole, and that is dropped each
// time the samples are thinned out.
static void the_highest_sample_of_each_process_is_kept(void **state)
{
    (void)state;
    CLEANUP(proc_sampler_release) struct proc_sampler s;
    proc_sampler_init(&s);
    for (uint64_t moment = 0; moment / 4 < PROC_SAMPLER_MAX_SAMPLES; moment++) {
        const bool is_spike = moment == 1001;
        store(&s, moment * 10, is_spike ? 1 : 50, is_spike ? 40 : 10);
    }
    assert_true(s.samples.len <= PROC_SAMPLER_MAX_SAMPLES);
    size_t spikes = 0;
    for (size_t i = 0; i < s.samples.len; i++) {
        spikes += s.samples.items[i].process == 1 && s.samples.items[i].rss_bytes == 40 * MB;
    }
    assert_int_equal(spikes, 1);
}

static void glance(struct proc_sampler *s, uint64_t now_ms, uint64_t mb)
{
    const struct rec_rss_sample one = {.time_ms = now_ms, .rss_bytes = mb * MB};
    assert_int_equal(rss_sample_vec_push(&s->now.samples, one), ERR_OK);
    s->now.rss_bytes = mb * MB;
    assert_int_equal(proc_sampler_end_glances(s, now_ms, 0), mb * MB);
}

// Of the glances of an interval the highest is stored, once, whatever came before.
static void the_highest_glance_of_each_interval_is_stored(void **state)
{
    (void)state;
    static const uint64_t mb[] = {5, 9, 7, 3, 1, 2, 1, 8, 8, 4, 6, 0};
    static const uint64_t wanted_mb[] = {9, 3, 8};
    CLEANUP(proc_sampler_release) struct proc_sampler s;
    proc_sampler_init(&s);
    s.interval_ms = 40;
    s.stored_ms = 0;
    for (size_t i = 0; i < ARRAY_LEN(mb); i++) {
        glance(&s, 10 * (i + 1), mb[i]);
        print_message("%zu stored\n", s.samples.len);
    }
    assert_int_equal(s.samples.len, ARRAY_LEN(wanted_mb));
    for (size_t i = 0; i < s.samples.len; i++) {
        assert_int_equal(s.samples.items[i].rss_bytes, wanted_mb[i] * MB);
    }
}

static void what_costs_more_is_done_less_often(void **state)
{
    (void)state;
    CLEANUP(proc_sampler_release) struct proc_sampler s;
    proc_sampler_init(&s);
    (void)proc_sampler_end_glances(&s, 1000, 100000); // 0.1 ms
    assert_true(proc_sampler_glance_due(&s, 1050));
    (void)proc_sampler_end_glances(&s, 1000, 4000000); // 4 ms are 0.4 % of a second
    assert_false(proc_sampler_glance_due(&s, 1999));
    assert_true(proc_sampler_glance_due(&s, 2000));
    proc_sampler_end_round(&s, 1000, 6000000);
    assert_false(proc_sampler_due(&s, 1990));
    assert_true(proc_sampler_due(&s, 2010));
}

static void this_process_is_resident(void **state)
{
    (void)state;
    CLEANUP(proc_sampler_release) struct proc_sampler s;
    struct aggregator_process process = {0};
    proc_sampler_init(&s);
    proc_sampler_glance(&s, getpid(), &process, 5);
    assert_int_equal(proc_sampler_end_glances(&s, 5, 0), 0); // nothing is known about it yet
    sample(&s, &process, 10);
    proc_sampler_glance(&s, getpid(), &process, 20);
    proc_sampler_glance(&s, 0x3ffffff0, &process, 20); // no process
    assert_true(proc_sampler_end_glances(&s, 20, 0) > 100000);
    assert_int_equal(s.highest.samples.len, 1);
}

// The dearest looks that are as frequent as usual, and dearer ones, with a quarter of the share.
static void thrift_makes_looks_rarer(void **state)
{
    (void)state;
    CLEANUP(proc_sampler_release) struct proc_sampler s;
    proc_sampler_init(&s);
    s.thrift_bits = 2;
    (void)proc_sampler_end_glances(&s, 1000, 100000); // 0.1 ms
    assert_false(proc_sampler_glance_due(&s, 1099));
    assert_true(proc_sampler_glance_due(&s, 1100));
    proc_sampler_end_round(&s, 1000, 1000000); // 1 ms
    assert_false(proc_sampler_due(&s, 1667));
    assert_true(proc_sampler_due(&s, 1668));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thrift_makes_looks_rarer),
        cmocka_unit_test(no_peak_between_two_samples_is_missed),
        cmocka_unit_test(a_rest_is_quiet_until_memory_moves),
        cmocka_unit_test(shared_pages_that_may_be_repeated_make_samples_due),
        cmocka_unit_test(a_glance_counts_what_one_of_them_must_have),
        cmocka_unit_test(samples_of_pages_that_come_meanwhile_count_once),
        cmocka_unit_test(the_next_samples_end_a_doubt),
        cmocka_unit_test(the_highest_sample_of_each_process_is_kept),
        cmocka_unit_test(the_highest_glance_of_each_interval_is_stored),
        cmocka_unit_test(what_costs_more_is_done_less_often),
        cmocka_unit_test(this_process_is_resident),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
