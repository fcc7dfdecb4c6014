// SPDX-License-Identifier: MIT
// Tests of findings, on drawings of programs with one known fault each, and of healthy ones.
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "profile/test_support/drawn_findings.h"

// A program that holds 40 MiB for a moment: from 10 MiB at 300 ms, the trough, to 40 MiB at 500 ms.
static const char peak[] = "main;load(a.c:7) 4 41943040 4 41943040 0 0 3 31457280 31457280\n"
                           "@0 1 10485760 0 0 0\n@2 0 0 1 10485760 0\n@4 3 31457280 0 0 0\n"
                           "@8 0 0 3 31457280 0\n"
                           "main;keep(a.c:9) 1 10485760 0 0 0 0 1 10485760 10485760\n"
                           "@1 1 10485760 0 0 0\n";

// Ten slices of 100 ms, with 64 KiB more in each that are never freed. A cohort for each slice.
static void draw_growth(struct strbuf *out, const char *site, unsigned slices)
{
    strbuf_printf(out, "main;serve;%s %u %u 0 0 0 0 %u %u %u\n", site, slices, slices * 65536,
                  slices, slices * 65536, slices * 65536);
    for (unsigned i = 0; i < slices; i++) {
        strbuf_printf(out, "@%u 1 65536 0 0 0\n", i);
    }
    for (unsigned i = 0; i < slices; i++) {
        strbuf_printf(out, "cohort %u - 1 65536\n", i);
    }
}

static void find_all(uint64_t runtime_ms, struct drawn_profile *drawn, struct findings *out)
{
    drawn->profile->recording.meta.runtime_ms = runtime_ms;
    drawn->profile->recording.totals.peak_time_ms = 450;
    struct summary summary;
    assert_int_equal(summary_build(&drawn->selection, &summary), ERR_OK);
    CLEANUP(rss_breakdown_release) struct rss_breakdown breakdown = {0};
    assert_int_equal(rss_breakdown_build(drawn->profile, 0, &breakdown), ERR_OK);
    assert_int_equal(findings_build(&drawn->selection, &summary, &breakdown, out), ERR_OK);
}

static void
build(const char *text, uint64_t runtime_ms, struct drawn_profile *drawn, struct findings *out)
{
    drawn_profile_open(text, drawn);
    find_all(runtime_ms, drawn, out);
}

static void the_peak_is_explained(void **state)
{
    (void)state;
    CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
    CLEANUP(findings_release) struct findings findings = {0};
    build(peak, 1000, &drawn, &findings);
    const struct finding *found = find(&findings, FINDING_PEAK);
    assert_non_null(found);
    assert_string_equal(
        findings_sentence(&findings, found),
        "load (a.c:7) holds 30.0 MiB, 75.0% of the peak of 40.0 MiB. It gained 30.0 MiB "
        "since 400 ms, when the heap held 10.0 MiB; without that the peak would be "
        "10.0 MiB.");
    assert_int_equal(found->bytes, 31457280);
    assert_int_equal(findings.rise.trough_bytes, 10485760);
    assert_ptr_equal(found, findings.items.items); // the first of all
}

// A rise from 300 ms, of an index that grows by 14 MiB or not at all, and of a report.
static void another_maker_of_the_peak_is_named(void **state)
{
    (void)state;
#define BUMP "main;bump(c.c:1) 1 10485760 1 10485760\n@0 1 10485760 0 0 0\n@2 0 0 1 10485760 0\n"
    static const struct {
        const char *text;
        const char *sentence;
    } cases[] = {
        {BUMP "main;index(a.c:7) 2 25165824 0 0 0 0 2 25165824 25165824\n"
              "@1 1 10485760 0 0 0\n@4 1 14680064 0 0 0\n"
              "main;render(b.c:3) 3 15728640 0 0 0 0 3 15728640 15728640\n@4 3 15728640 0 0 0\n",
         "index (a.c:7) holds 24.0 MiB, 61.5% of the peak of 39.0 MiB. It gained 14.0 MiB "
         "since 400 ms, when the heap held 10.0 MiB; without that the peak would be "
         "25.0 MiB. render (b.c:3) gained 15.0 MiB in that time; without that the peak "
         "would be 24.0 MiB."},
        {BUMP "main;index(a.c:7) 1 15728640 0 0 0 0 1 15728640 15728640\n@1 1 15728640 0 0 0\n"
              "main;fill(b.c:9) 1 10485760 0 0 0 0 1 10485760 10485760\n@4 1 10485760 0 0 0\n"
              "main;render(b.c:3) 3 14680064 0 0 0 0 3 14680064 14680064\n@4 3 14680064 0 0 0\n",
         "index (a.c:7) holds 15.0 MiB, 38.5% of the peak of 39.0 MiB. render (b.c:3) gained "
         "14.0 MiB since 400 ms, when the heap held 15.0 MiB; without that the peak would be "
         "25.0 MiB."},
        // Both rise from the beginning, in two lines of one function and in another one.
        {"main;index(a.c:7) 2 12582912 0 0 0 0 2 12582912 12582912\n@1 2 12582912 0 0 0\n"
         "main;index(a.c:9) 1 4194304 0 0 0 0 1 4194304 4194304\n@1 1 4194304 0 0 0\n"
         "main;render(b.c:3) 3 10485760 0 0 0 0 3 10485760 10485760\n@1 3 10485760 0 0 0\n",
         "index (a.c:7 and 1 more line) holds 16.0 MiB, 61.5% of the peak of 26.0 MiB. render "
         "(b.c:3) holds another 10.0 MiB, 38.5%."},
        {"main;index(a.c:7) 2 16777216 0 0 0 0 2 16777216 16777216\n@1 2 16777216 0 0 0\n"
         "main;render(b.c:3) 3 7340032 0 0 0 0 3 7340032 7340032\n@1 3 7340032 0 0 0\n",
         "index (a.c:7) holds 16.0 MiB, 69.6% of the peak of 23.0 MiB."},
        // It gained most itself; what the other one holds was there before.
        {BUMP "main;keep(a.c:7) 2 15728640 0 0 0 0 2 15728640 15728640\n@1 2 15728640 0 0 0\n"
              "main;render(b.c:3) 3 20971520 0 0 0 0 3 20971520 20971520\n@4 3 20971520 0 0 0\n",
         "render (b.c:3) holds 20.0 MiB, 57.1% of the peak of 35.0 MiB. It gained 20.0 MiB since "
         "400 ms, when the heap held 15.0 MiB; without that the peak would be 15.0 MiB. keep "
         "(a.c:7) holds another 15.0 MiB, 42.9%."},
    };
#undef BUMP
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
        CLEANUP(findings_release) struct findings findings = {0};
        build(cases[i].text, 1000, &drawn, &findings);
        const struct finding *found = find(&findings, FINDING_PEAK);
        assert_non_null(found);
        assert_string_equal(findings_sentence(&findings, found), cases[i].sentence);
    }
}

// Two instances of a template on one line: the name without its arguments is that of both.
static void a_name_is_that_of_the_function_with_the_figure(void **state)
{
    (void)state;
    static const char text[] =
        "main;leaf<6>(m.cpp:7) 1 4194304 0 0 0 0 1 4194304 4194304\n@1 1 4194304 0 0 0\n"
        "main;leaf<63>(m.cpp:7) 1 8388608 0 0 0 0 1 8388608 8388608\n@1 1 8388608 0 0 0\n";
    CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
    CLEANUP(findings_release) struct findings findings = {0};
    build(text, 300, &drawn, &findings);
    const struct finding *found = find(&findings, FINDING_PEAK);
    assert_non_null(found);
    static const char begin[] = "leaf<63> (m.cpp:7) holds 8.00 MiB, 66.7% of the peak of 12.0 MiB.";
    const char *sentence = findings_sentence(&findings, found);
    if (strncmp(sentence, begin, sizeof(begin) - 1) != 0) {
        fail_msg("%s", sentence);
    }
}

// The drawing as a sample of one block in 64 KiB, most of them not recorded.
static void take_sample(struct recording *recording)
{
    recording->totals.sample_bytes = 65536;
    recording->totals.unsampled_allocations = 1000;
}

// Two standard errors of a sum of bytes: 2 sqrt(9/8 * 64 KiB * bytes).
static void figures_of_a_sample_have_their_errors(void **state)
{
    (void)state;
    CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
    CLEANUP(findings_release) struct findings findings = {0};
    drawn_profile_open(peak, &drawn);
    take_sample(&drawn.profile->recording);
    find_all(1000, &drawn, &findings);
    const struct finding *found = find(&findings, FINDING_PEAK);
    assert_non_null(found);
    assert_string_equal(
        findings_sentence(&findings, found),
        "load (a.c:7) holds 30.0 MiB ±10%, 75.0% of the peak of 40.0 MiB ±8%. It gained 30.0 MiB "
        "±10% since 400 ms, when the heap held 10.0 MiB ±17%; without that the peak would be "
        "10.0 MiB ±17%.");
    assert_int_equal(found->bytes_error, 3045839);
    assert_int_equal(found->whole_bytes_error, 3517031);
}

// 30 MiB that are allocated and freed in the slice of the peak: no end of a slice has them.
static void a_peak_of_a_moment_is_explained(void **state)
{
    (void)state;
    static const char text[] = "main;burst(b.c:3) 1 31457280 1 31457280 0 0 1 31457280 31457280\n"
                               "@4 1 31457280 1 31457280 0\n"
                               "main;keep(a.c:9) 2 10485760 0 0 0 0 2 10485760 10485760\n"
                               "@1 1 9437184 0 0 0\n@6 1 1048576 0 0 0\n";
    CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
    CLEANUP(findings_release) struct findings findings = {0};
    build(text, 1000, &drawn, &findings);
    const struct finding *found = find(&findings, FINDING_PEAK);
    assert_non_null(found);
    const char *name = profile_location_function(drawn.profile, found->location);
    assert_string_equal(name, "burst");
    for (uint32_t i = 0; i < findings.rise.gained.len; i++) {
        const bool is_burst = row_groups_location(&findings.groups, i) == found->location;
        const uint64_t gained = findings.rise.gained.items[i];
        if (is_burst ? gained != 31457280 : gained > 10485760) {
            fail_msg("group %u gained %llu", i, (unsigned long long)gained);
        }
    }
}

// The rise takes two slices, with a pause between them: the trough is before both.
static void a_pause_ends_no_rise(void **state)
{
    (void)state;
    static const char text[] = "main;fill(a.c:7) 2 31457280 0 0 0 0 2 31457280 31457280\n"
                               "@2 1 10485760 0 0 0\n@4 1 20971520 0 0 0\n"
                               "main;keep(a.c:9) 1 4194304 0 0 0 0 1 4194304 4194304\n"
                               "@0 1 4194304 0 0 0\n";
    CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
    CLEANUP(findings_release) struct findings findings = {0};
    build(text, 1000, &drawn, &findings);
    const struct finding *found = find(&findings, FINDING_PEAK);
    assert_non_null(found);
    for (uint32_t i = 0; i < findings.rise.gained.len; i++) {
        if (row_groups_location(&findings.groups, i) == found->location) {
            assert_int_equal(findings.rise.gained.items[i], 31457280);
        }
    }
}

// The counts of the peak are in a slice, and its time in the one after it, in which what made it is
// freed already: both functions rose to the peak.
static void a_peak_that_is_seen_late_keeps_its_rise(void **state)
{
    (void)state;
    static const char text[] = "main;fill(a.c:7) 8 8388608 8 8388608 0 0 8 8388608 8388608\n"
                               "@1 8 8388608 0 0 0\n@3 0 0 8 8388608 0\n"
                               "main;keep(a.c:9) 5 1310720 0 0 0 0 4 1048576 1310720\n"
                               "@0 1 262144 0 0 0\n@1 1 262144 0 0 0\n@2 1 262144 0 0 0\n"
                               "@3 1 262144 0 0 0\n@4 1 262144 0 0 0\n";
    CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
    CLEANUP(findings_release) struct findings findings = {0};
    build(text, 1000, &drawn, &findings);
    const struct finding *found = find(&findings, FINDING_PEAK);
    assert_non_null(found);
    assert_int_equal(findings.rise.trough_bytes, 0); // the beginning of the run
    assert_int_equal(findings.rise.peak_ms, 400);
    for (uint32_t i = 0; i < findings.rise.gained.len; i++) {
        const bool is_fill = row_groups_location(&findings.groups, i) == found->location;
        assert_int_equal(findings.rise.gained.items[i], is_fill ? 8388608 : 1048576);
    }
}

// A block that grows from nothing to 4 MiB by 4 KiB moves 2 GiB; by an eighth of its size, 32 MiB.
static void growth_step_by_step_is_found(void **state)
{
    (void)state;
    static const char stacks[] = "main;push(v.c:5) 1024 2149580800 1023 2145386496\n%s"
                                 "main;keep(a.c:9) 1 10485760 0 0 0 0 1 10485760 10485760\n";
    static const struct {
        const char *reallocs;
        const char *sentence; // NULL: no finding
    } cases[] = {
        {"realloc 1023 2145386496 4190208 4194304\n",
         "push (v.c:5) grows blocks step by step: 1,023 reallocs by 4.00 KiB on average, up to "
         "4.00 "
         "MiB, moved up to 2.00 GiB. Doubling the size would move about 4.00 MiB."},
        {"realloc 1023 2145386496 134086657 4194304\n", NULL}, // 16 times and a bit less
        {"realloc 60 33554432 4190208 4194304\n", NULL},       // an eighth
        {"realloc 1023 16777216 4096 4194304\n", NULL},        // little beside all allocations
        {"", NULL},                                            // as from another profiler
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
        CLEANUP(findings_release) struct findings findings = {0};
        char text[512];
        (void)snprintf(text, sizeof(text), stacks, cases[i].reallocs);
        build(text, 1000, &drawn, &findings);
        const struct finding *found = find(&findings, FINDING_CHURN);
        assert_int_equal(found != NULL, cases[i].sentence != NULL);
        if (found != NULL) {
            assert_string_equal(findings_sentence(&findings, found), cases[i].sentence);
        }
    }
}

// In ten seconds 6.25 MiB of growth were seen. That it goes on for a minute is not known.
static void growth_of_seconds_does_not_outrank_the_peak(void **state)
{
    (void)state;
    CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
    CLEANUP(findings_release) struct findings findings = {0};
    CLEANUP(strbuf_release) struct strbuf text = {0};
    strbuf_append_text(&text, peak);
    draw_growth(&text, "charge(pay.c:3)", 100);
    build(strbuf_text(&text), 10000, &drawn, &findings);
    const struct finding *growth = find(&findings, FINDING_GROWTH);
    assert_non_null(growth);
    assert_int_equal(findings.items.items[0].kind, FINDING_PEAK);
    assert_int_equal(growth->score, 100 * UINT64_C(65536) + 10 * (uint64_t)growth->bytes_per_s);
}

// 64 KiB in 320 seconds are 204.8 B a second.
static void a_slow_growth_is_rounded(void **state)
{
    (void)state;
    CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
    CLEANUP(findings_release) struct findings findings = {0};
    CLEANUP(strbuf_release) struct strbuf text = {0};
    draw_growth(&text, "charge(pay.c:3)", 100);
    drawn_profile_open(strbuf_text(&text), &drawn);
    drawn.profile->recording.slice_ms = 320000;
    find_all(32000000, &drawn, &findings);
    const struct finding *found = find(&findings, FINDING_GROWTH);
    assert_non_null(found);
    assert_non_null(strstr(findings_sentence(&findings, found), ", by 205 B a second over "));
}

// Three leaks, and churn with the least bytes: it is the answer to another question than theirs.
static void an_answer_does_not_hide_those_to_other_questions(void **state)
{
    (void)state;
    static const enum finding_kind wanted[] = {FINDING_PEAK, FINDING_GROWTH, FINDING_CHURN,
                                               FINDING_GROWTH, FINDING_GROWTH};
    CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
    CLEANUP(findings_release) struct findings findings = {0};
    CLEANUP(strbuf_release) struct strbuf text = {0};
    strbuf_append_text(&text, peak);
    draw_growth(&text, "charge(pay.c:3)", 100);
    draw_growth(&text, "refund(pay.c:5)", 99);
    draw_growth(&text, "ship(post.c:7)", 98);
    strbuf_append_text(&text, "main;spam(s.c:2) 20000 2000000 20000 2000000 20000 2000000\n");
    build(strbuf_text(&text), 10000, &drawn, &findings);
    assert_int_equal(findings.items.len, ARRAY_LEN(wanted));
    uint64_t growth_score = UINT64_MAX;
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        const struct finding *found = &findings.items.items[i];
        assert_int_equal(found->kind, wanted[i]);
        if (found->kind == FINDING_GROWTH) { // the highest first
            assert_true(found->score < growth_score);
            growth_score = found->score;
        }
    }
}

static void growth_is_found_only_in_long_runs(void **state)
{
    (void)state;
    static const struct {
        unsigned slices;
        uint64_t runtime_ms;
        const char *period; // over which it grew; NULL: no finding
    } cases[] = {{100, 10000, "5.00 s"}, {100, 9940, "4.94 s"}, {9, 900, NULL}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
        CLEANUP(findings_release) struct findings findings = {0};
        CLEANUP(strbuf_release) struct strbuf text = {0};
        draw_growth(&text, "charge(pay.c:3)", cases[i].slices);
        build(strbuf_text(&text), cases[i].runtime_ms, &drawn, &findings);
        const struct finding *found = find(&findings, FINDING_GROWTH);
        assert_int_equal(found != NULL, cases[i].period != NULL);
        if (found != NULL) {
            CLEANUP(strbuf_release) struct strbuf sentence = {0};
            strbuf_printf(&sentence,
                          "charge (pay.c:3) grows until the end, by 640 KiB a second over the "
                          "last %s: 6.25 MiB in 100 blocks were never freed.",
                          cases[i].period);
            assert_string_equal(findings_sentence(&findings, found), strbuf_text(&sentence));
            assert_ptr_equal(found, findings.items.items);
        }
        assert_null(find(&findings, FINDING_UNFREED));
    }
}

// A block of `first_bytes` at the start, unless that is 0, then one of `step_bytes` in each of some
// slices. None is freed. Others work in these slices, and do nothing in the calm ones.
static void draw_steps(struct strbuf *out,
                       uint64_t first_bytes,
                       uint64_t step_bytes,
                       unsigned steps,
                       unsigned calm_slices)
{
    const uint64_t bytes = first_bytes + steps * step_bytes;
    const unsigned blocks = steps + (first_bytes > 0);
    strbuf_printf(out, "main;charge(pay.c:3) %u %" PRIu64 " 0 0 0 0 %u %" PRIu64 " %" PRIu64 "\n",
                  blocks, bytes, blocks, bytes, bytes);
    for (unsigned i = 0; i < steps; i++) {
        const uint64_t own = step_bytes + (i == 0 ? first_bytes : 0);
        strbuf_printf(out, "@%u %d %" PRIu64 " 0 0 0\n", i, i == 0 && first_bytes > 0 ? 2 : 1, own);
    }
    for (unsigned i = 0; i < steps; i++) {
        const uint64_t own = step_bytes + (i == 0 ? first_bytes : 0);
        strbuf_printf(out, "cohort %u - %d %" PRIu64 "\n", i, i == 0 && first_bytes > 0 ? 2 : 1,
                      own);
    }
    strbuf_printf(out, "main;work %u %u %u %u\n", 50 * steps + 1, 50 * steps + 1, 50 * steps + 1,
                  50 * steps + 1);
    for (unsigned i = 0; i < steps; i++) {
        strbuf_printf(out, "@%u 50 50 50 50 0\n", i);
    }
    strbuf_printf(out, "@%u 1 1 1 1 0\n", steps + calm_slices - 1 + (calm_slices == 0));
}

// A level that has grown hardly, and growth that was over soon, as of a program that starts, are no
// findings.
static void growth_of_little_note_is_left_out(void **state)
{
    (void)state;
    static const struct {
        uint64_t first_bytes; // at once
        uint64_t step_bytes;  // then, in each slice
        unsigned steps;
        unsigned calm_slices;
        bool is_found;
    } cases[] = {{0, 1000, 100, 0, true},
                 {1000000, 1000, 100, 0, true},
                 {1000000, 100, 100, 0, false},
                 {0, 10000, 40, 60, true},
                 {0, 10000, 10, 90, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
        CLEANUP(findings_release) struct findings findings = {0};
        CLEANUP(strbuf_release) struct strbuf text = {0};
        draw_steps(&text, cases[i].first_bytes, cases[i].step_bytes, cases[i].steps,
                   cases[i].calm_slices);
        build(strbuf_text(&text), 100 * (uint64_t)(cases[i].steps + cases[i].calm_slices), &drawn,
              &findings);
        assert_int_equal(find(&findings, FINDING_GROWTH) != NULL, cases[i].is_found);
    }
}

// Stacks of one block each, which come one after the other in the slices [first, end).
static void draw_stacks(struct strbuf *out, unsigned count, unsigned first, unsigned end)
{
    for (unsigned i = 0; i < count; i++) {
        strbuf_printf(out, "main;load%u(l.c:%u) 1 10 0 0 0 0 1 10 10\n", i, i + 1);
        strbuf_printf(out, "@%u 1 10 0 0 0\ncohort %u - 1 10\n", first + (end - first) * i / count,
                      first + (end - first) * i / count);
    }
}

// What grows while a program still comes to new code is its start, as far as the run shows. A
// program that has started, one with few stacks, a long run and an attached process are judged.
static void the_start_of_a_program_is_no_growth(void **state)
{
    (void)state;
    static const struct {
        unsigned stacks;
        unsigned end; // slice after the last new stack
        unsigned slice_ms;
        uint32_t flags;
        bool is_found;
    } cases[] = {{300, 100, 100, 0, false},
                 {300, 60, 100, 0, true},
                 {100, 100, 100, 0, true},
                 {300, 100, 300, 0, true},
                 {300, 100, 100, REC_PROCESS_ATTACHED, true}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
        CLEANUP(findings_release) struct findings findings = {0};
        CLEANUP(strbuf_release) struct strbuf text = {0};
        draw_growth(&text, "charge(pay.c:3)", 100);
        draw_stacks(&text, cases[i].stacks, 0, cases[i].end);
        drawn_profile_open(strbuf_text(&text), &drawn);
        drawn.profile->recording.slice_ms = cases[i].slice_ms;
        drawn.profile->recording.processes[0].flags |= cases[i].flags;
        find_all(100 * (uint64_t)cases[i].slice_ms, &drawn, &findings);
        print_message("case %zu\n", i);
        assert_int_equal(find(&findings, FINDING_GROWTH) != NULL, cases[i].is_found);
    }
}

// A block of 64 KiB in each slice. In the one behind them all but `left` are freed.
static void draw_cache(struct strbuf *out, unsigned slices, unsigned left)
{
    const unsigned freed = slices - left;
    strbuf_printf(out, "main;cache_put(c.c:3) %u %u %u %u 0 0 %u %u %u\n", slices, slices * 65536,
                  freed, freed * 65536, slices, slices * 65536, slices * 65536);
    for (unsigned i = 0; i < slices; i++) {
        strbuf_printf(out, "@%u 1 65536 0 0 0\n", i);
    }
    strbuf_printf(out, "@%u 0 0 %u %u 0\n", slices, freed, freed * 65536);
    for (unsigned i = 0; i < freed; i++) {
        strbuf_printf(out, "cohort %u %u 1 65536\n", i, slices);
    }
    for (unsigned i = freed; i < slices; i++) {
        strbuf_printf(out, "cohort %u - 1 65536\n", i);
    }
}

// A cache or a queue without bounds that the program frees before it ends, and what only looks so:
// memory that is freed long before the end, or that does not grow.
static void the_peak_says_that_it_was_freed_at_the_end(void **state)
{
    (void)state;
    static const struct {
        unsigned slices;
        unsigned left;
        unsigned calm_slices; // behind the free
        bool is_found;
    } cases[] = {
        {100, 0, 0, true},   {100, 0, 1, true},   {100, 10, 0, false}, // a leak, which is said
        {100, 60, 0, false}, {100, 0, 40, false}, {15, 0, 0, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
        CLEANUP(findings_release) struct findings findings = {0};
        CLEANUP(strbuf_release) struct strbuf text = {0};
        const unsigned slices = cases[i].slices + 1 + cases[i].calm_slices;
        draw_cache(&text, cases[i].slices, cases[i].left);
        strbuf_printf(&text, "main;work 1 1 1 1\n@%u 1 1 1 1 0\n", slices - 1);
        build(strbuf_text(&text), 100 * (uint64_t)slices, &drawn, &findings);
        const struct finding *found = find(&findings, FINDING_PEAK);
        const char *sentence = found != NULL ? findings_sentence(&findings, found) : "";
        const bool is_found =
            strstr(sentence,
                   " It grew by 640 KiB a second over 5.00 s, and was freed at the end.") != NULL;
        if (is_found != cases[i].is_found) {
            fail_msg("case %zu: '%s'", i, sentence);
        }
        assert_int_equal(find(&findings, FINDING_GROWTH) != NULL, cases[i].left > 0);
    }
}

// What a process holds that runs on is live, and has not grown until an end.
static void memory_of_a_process_that_runs_is_live(void **state)
{
    (void)state;
    static const struct {
        uint32_t state; // enum rec_state
        uint32_t flags; // enum rec_process_flags
        uint64_t end_error_ms;
        bool has_ended;
    } cases[] = {{REC_STATE_FINISHED, 0, 1, true},
                 {REC_STATE_STOPPED, 0, 1, true}, // threads gave the recorder up
                 {REC_STATE_STOPPED, REC_PROCESS_RUNNING, 1, false},
                 {REC_STATE_STOPPED, 0, 0, false}, // an old file
                 {REC_STATE_FINISHED, 0, 0, true},
                 {REC_STATE_RUNNING, REC_PROCESS_RUNNING, 1, false},
                 {REC_STATE_RUNNING, 0, 0, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
        CLEANUP(findings_release) struct findings findings = {0};
        CLEANUP(strbuf_release) struct strbuf text = {0};
        draw_growth(&text, "charge(pay.c:3)", 100);
        drawn_profile_open(strbuf_text(&text), &drawn);
        drawn.profile->recording.meta.state = cases[i].state;
        drawn.profile->recording.processes[0].flags |= cases[i].flags;
        drawn.profile->recording.processes[0].end_error_ms = cases[i].end_error_ms;
        find_all(10000, &drawn, &findings);
        const struct finding *found = find(&findings, FINDING_GROWTH);
        assert_non_null(found);
        const char *sentence = findings_sentence(&findings, found);
        const char *cost = profile_cost_info(drawn.profile, COST_LEAKED_BYTES).option;
        assert_int_equal(profile_has_ended(drawn.profile), cases[i].has_ended);
        assert_int_equal(strstr(sentence, "until the end") != NULL, cases[i].has_ended);
        assert_int_equal(strstr(sentence, "never freed") != NULL, cases[i].has_ended);
        assert_int_equal(strstr(sentence, "not freed so far") == NULL, cases[i].has_ended);
        assert_string_equal(cost, cases[i].has_ended ? "leaked" : "live");
    }
}

// The main thread holds most, but is no sibling of the others.
#define UNEVEN_THREADS(bytes)                                               \
    "process app\nthread app\nmain;load 1 100000000 1 100000000\n"          \
    "thread worker-1\nrun;hold 1 2097152 0 0 0 0 1 2097152 2097152\n"       \
    "thread worker-2\nrun;hold 1 1048576 0 0 0 0 1 1048576 1048576\n"       \
    "thread worker-3\nrun;hold 1 " bytes " 0 0 0 0 1 " bytes " " bytes "\n" \
    "thread worker-10\nrun;hold 1 2097152 0 0 0 0 1 2097152 2097152\n"

// Threads that have not named themselves, and one that may have.
#define UNEVEN_UNNAMED(other)                                                          \
    "process app\nthread app\nmain;load 1 1 1 1\n"                                     \
    "thread app\nrun;hold 1 67108864 0 0 0 0 1 67108864 67108864\n"                    \
    "thread app\nrun;hold 1 9 0 0 0 0 1 9 9\nthread app\nrun;hold 1 9 0 0 0 0 1 9 9\n" \
    "thread " other "\nrun;hold 1 9 0 0 0 0 1 9 9\n"                                   \
    "thread app\nrun;hold 1 9 0 0 0 0 1 9 9\n"

static const struct {
    uint64_t runtime_ms;
    const char *text;
    enum finding_kind kind; // FINDING_KIND_COUNT: no finding at all
    const char *sentence;
} fault_cases[] = {
    {5000,
     "main;spam(s.c:2) 40000 4000000 40000 4000000 30000 3000000 1 100 100\n"
     "main;work 60000 60000 60000 60000 0 0 1 1 1\n",
     FINDING_CHURN,
     "spam (s.c:2) makes 30,000 temporary allocations, 30.0% of all allocations (2.86 MiB): "
     "its thread frees each with its next heap call."},
    {5000,
     "main;init(i.c:2) 1 8388608 0 0 0 0 1 8388608 8388608\n@0 1 8388608 0 0 "
     "0\n"
     "cohort 0 - 1 8388608\nmain;work 1 1 1 1\n@49 1 1 1 1 0\n",
     FINDING_UNFREED,
     "8.00 MiB are live at the end, and no call site with much of it grows. The largest "
     "part, 8.00 MiB, was allocated by init (i.c:2)."},
    {5000, // of a function, the sum of its lines
     "main;init(i.c:2) 1 4194304 0 0 0 0 1 4194304 4194304\n@0 1 4194304 0 0 0\n"
     "cohort 0 - 1 4194304\n"
     "main;init(i.c:3) 1 2097152 0 0 0 0 1 2097152 2097152\n@0 1 2097152 0 0 0\n"
     "cohort 0 - 1 2097152\nmain;work 1 1 1 1\n@49 1 1 1 1 0\n",
     FINDING_UNFREED,
     "6.00 MiB are live at the end, and no call site with much of it grows. The largest "
     "part, 6.00 MiB, was allocated by init (i.c:2 and 1 more line)."},
    {5000,
     "process sh\nthread sh\nmain;run 1 2097152 0 0 0 0 1 2097152 2097152\n"
     "process cc\nthread cc\nmain;init(i.c:2) 1 8388608 0 0 0 0 1 2097152 8388608\n"
     "@0 1 8388608 0 0 0\ncohort 0 - 1 8388608\nmain;work 1 1 1 1\n@49 1 1 1 1 0\n",
     FINDING_UNFREED,
     "10.0 MiB were left by processes one after the other, and no call site with much of it "
     "grows. The largest part, 8.00 MiB, was allocated by init (i.c:2)."},
    {5000,
     "main;parse(p.c:7) 150000 1073741824 150000 1073741824\nlife 0 140000 1048576\n"
     "life 9 10000 1072693248\nmain;work 200000 200000\n",
     FINDING_CHURN, // with the bytes of those blocks alone
     "parse (p.c:7) makes 140,000 allocations that live for less than a millisecond, 40.0% of "
     "all allocations (1.00 MiB)."},
    {5000, UNEVEN_THREADS("67108864"), FINDING_UNEVEN,
     "Thread worker-3 holds 64.0 MiB at the peak; the median of 4 of its kind holds 2.00 MiB."},
    {5000,
     "process app\nthread app\nmain;load 1 1 1 1\n"
     "thread io/1\nrun;hold 1 67108864 0 0 0 0 1 67108864 67108864\n"
     "thread io/2\nrun;hold 1 9 0 0 0 0 1 9 9\nthread io/3\nrun;hold 1 9 0 0 0 0 1 9 9\n"
     "thread io/4\nrun;hold 1 9 0 0 0 0 1 9 9\n",
     FINDING_UNEVEN,
     "Thread io/1 holds 64.0 MiB at the peak; the median of 4 of its kind holds 9 B."},
    {5000, UNEVEN_THREADS("7340032"), FINDING_UNEVEN, ""}, // 7 MiB are none
    {5000, UNEVEN_UNNAMED("app"), FINDING_UNEVEN,
     "Thread app holds 64.0 MiB at the peak; the median of 5 of its kind holds 9 B."},
    {5000, UNEVEN_UNNAMED("marker"), FINDING_UNEVEN, ""}, // the others may be of any kind
    {5000,
     "main;parse(p.c:7) 150000 150000 150000 150000\nlife 0 99000 99000\n"
     "life 9 51000 51000\nmain;work 20 20\n",
     FINDING_KIND_COUNT, ""},
    // healthy: little memory, few temporary allocations, all freed or short
    {5000, "main;work 50 5000 50 5000 40 4000 10 1000 1000\n", FINDING_KIND_COUNT, ""},
    {300, "main;work 50 500000 0 0 0 0 50 500000 500000\n", FINDING_KIND_COUNT, ""},
    {5000, "main;work 90000 90000 90000 90000 90000 90000 1 1 1\n", FINDING_KIND_COUNT, ""},
    {0, "", FINDING_KIND_COUNT, ""},
};

static void other_faults_have_their_kind(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(fault_cases); i++) {
        CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
        CLEANUP(findings_release) struct findings findings = {0};
        build(fault_cases[i].text, fault_cases[i].runtime_ms, &drawn, &findings);
        const struct finding *found = find(&findings, fault_cases[i].kind);
        const char *sentence = found != NULL ? findings_sentence(&findings, found) : "";
        if (strcmp(sentence, fault_cases[i].sentence) != 0 ||
            (fault_cases[i].kind == FINDING_KIND_COUNT && findings.items.len > 0)) {
            fail_msg("%zu findings; \"%s\" in:\n%s", findings.items.len, sentence,
                     fault_cases[i].text);
        }
    }
}

// Subcommands of one executable are not alike. Files and options tell nothing.
static void a_process_is_compared_with_those_of_its_subcommand(void **state)
{
    (void)state;
    static const struct {
        const char *commands[5];
        bool is_found;
    } cases[] = {
        {{"git repack", "git repack", "git repack", "git repack", "git repack"}, true},
        {{"git repack -d", "git prune", "git prune", "git rerere gc", "git rerere gc"}, false},
        {{"cc1 a.c", "cc1 b.c", "cc1 -O2 c.c", "cc1", "cc1 7"}, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
        CLEANUP(findings_release) struct findings findings = {0};
        CLEANUP(strbuf_release) struct strbuf text = {0};
        for (size_t k = 0; k < ARRAY_LEN(cases[i].commands); k++) {
            const int bytes = k == 0 ? 64 << 20 : 1 << 20; // its own peak
            strbuf_printf(&text, "process tool\nthread tool\n%s;main;run 1 %d 0 0 0 0 1 %d %d\n",
                          cases[i].commands[k], bytes, bytes, bytes); // a name to find
        }
        drawn_profile_open(strbuf_text(&text), &drawn);
        for (size_t k = 0; k < ARRAY_LEN(cases[i].commands); k++) {
            struct rec_process *process = &drawn.profile->recording.processes[k];
            process->peak_bytes = k == 0 ? 64 << 20 : 1 << 20;
            process->command_line = string_of(drawn.profile, cases[i].commands[k]);
        }
        find_all(5000, &drawn, &findings);
        assert_int_equal(find(&findings, FINDING_UNEVEN) != NULL, cases[i].is_found);
    }
}

static void a_kill_for_lack_of_memory_comes_first(void **state)
{
    (void)state;
    CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
    CLEANUP(findings_release) struct findings findings = {0};
    CLEANUP(strbuf_release) struct strbuf text = {0};
    draw_growth(&text, "charge(pay.c:3)", 100);
    drawn_profile_open(strbuf_text(&text), &drawn);
    drawn.profile->recording.meta.oom_limit_bytes = 8 << 20;
    find_all(10000, &drawn, &findings);
    assert_true(findings.items.len >= 2);
    assert_string_equal(finding_kind_name(findings.items.items[0].kind), "oom");
    assert_string_equal(
        findings_sentence(&findings, &findings.items.items[0]),
        "out of memory: limit 8.00 MiB, heap 6.25 MiB; charge (pay.c:3) held 6.25 MiB.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_peak_is_explained),
        cmocka_unit_test(another_maker_of_the_peak_is_named),
        cmocka_unit_test(a_name_is_that_of_the_function_with_the_figure),
        cmocka_unit_test(figures_of_a_sample_have_their_errors),
        cmocka_unit_test(a_peak_of_a_moment_is_explained),
        cmocka_unit_test(a_pause_ends_no_rise),
        cmocka_unit_test(a_peak_that_is_seen_late_keeps_its_rise),
        cmocka_unit_test(growth_step_by_step_is_found),
        cmocka_unit_test(growth_of_seconds_does_not_outrank_the_peak),
        cmocka_unit_test(a_slow_growth_is_rounded),
        cmocka_unit_test(an_answer_does_not_hide_those_to_other_questions),
        cmocka_unit_test(growth_is_found_only_in_long_runs),
        cmocka_unit_test(growth_of_little_note_is_left_out),
        cmocka_unit_test(the_peak_says_that_it_was_freed_at_the_end),
        cmocka_unit_test(the_start_of_a_program_is_no_growth),
        cmocka_unit_test(memory_of_a_process_that_runs_is_live),
        cmocka_unit_test(other_faults_have_their_kind),
        cmocka_unit_test(a_process_is_compared_with_those_of_its_subcommand),
        cmocka_unit_test(a_kill_for_lack_of_memory_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
