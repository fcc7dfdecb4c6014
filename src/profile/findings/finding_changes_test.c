// SPDX-License-Identifier: MIT
// Tests of finding_changes: two drawn runs, and the verdict on each of their findings.
#include "profile/findings/finding_changes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "profile/test_support/drawn_profile.h"

enum {
    CHANGES_MAX = 4,
    SLICES = 100, // of 100 ms
};

#define THRESHOLD 0.01

struct wanted_change {
    enum finding_kind kind;
    enum diff_class class;
    const char *function; // NULL: the whole program
    double old;
    double new;
};

// One side: what load holds at the peak, the temporary allocations of split, and how much leak
// loses in each slice, in KiB.
struct run {
    unsigned peak_kib;
    unsigned temporaries;
    unsigned leak_kib;
};

static void draw(const struct run *run, struct strbuf *out)
{
    const unsigned peak = run->peak_kib * 1024;
    const unsigned leak = run->leak_kib * 1024;
    strbuf_append_text(out, "main;idle 1 8 1 8\n@99 1 8 1 8 0\n"); // the last slice
    if (peak > 0) {
        strbuf_printf(out, "main;load 1 %u 1 %u 0 0 1 %u %u\n@2 1 %u 0 0 0\n@4 0 0 1 %u 0\n", peak,
                      peak, peak, peak, peak, peak);
    }
    if (run->temporaries > 0) {
        const unsigned n = run->temporaries;
        strbuf_printf(out, "main;split %u %u %u %u %u %u 0 0 0\n@1 %u %u %u %u %u\n", n, n * 200, n,
                      n * 200, n, n * 200, n, n * 200, n, n * 200, n);
    }
    if (leak > 0) {
        strbuf_printf(out, "main;leak %d %u 0 0 0 0 0 0 %u\n", SLICES, leak * SLICES,
                      leak * SLICES);
        for (unsigned i = 0; i < SLICES; i++) {
            strbuf_printf(out, "@%u 1 %u 0 0 0\n", i, leak);
        }
        for (unsigned i = 0; i < SLICES; i++) {
            strbuf_printf(out, "cohort %u - 1 %u\n", i, leak);
        }
    }
}

static void open_run(const struct run *run, struct drawn_profile *out)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    draw(run, &text);
    assert_int_equal(strbuf_result(&text), ERR_OK);
    drawn_profile_open(strbuf_text(&text), out);
    out->profile->recording.meta.runtime_ms = 10000;
    out->profile->recording.totals.peak_time_ms = 450;
}

static void check_change(size_t at,
                         const struct diff *diff,
                         const struct finding_change *found,
                         const struct wanted_change *wanted)
{
    const struct finding *finding = found->of[finding_change_side(found)];
    const char *function =
        found->function != REC_NONE ? code_union_name(diff->code, found->function) : "";
    if (finding->kind != wanted->kind || found->class != wanted->class ||
        strcmp(function, wanted->function != NULL ? wanted->function : "") != 0 ||
        found->change.old != wanted->old || found->change.new != wanted->new) {
        fail_msg("change %zu: %s %s of '%s' %.0f -> %.0f, wanted %s %s of '%s' %.0f -> %.0f", at,
                 diff_class_name(found->class), finding_kind_name(finding->kind), function,
                 found->change.old, found->change.new, diff_class_name(wanted->class),
                 finding_kind_name(wanted->kind), wanted->function, wanted->old, wanted->new);
    }
}

static void check(const struct run *old,
                  const struct run *new,
                  double threshold,
                  const struct wanted_change *wanted)
{
    CLEANUP(drawn_profile_release) struct drawn_profile new_run = {0};
    CLEANUP(drawn_profile_release) struct drawn_profile old_run = {0};
    CLEANUP(code_union_release) struct code_union code = {0};
    CLEANUP(diff_release) struct diff diff = {0};
    CLEANUP(finding_changes_release) struct finding_changes changes = {0};
    const struct diff_units plain = {{1, 1}};
    open_run(new, &new_run);
    open_run(old, &old_run);
    assert_int_equal(code_union_build(new_run.profile, old_run.profile, &code), ERR_OK);
    assert_int_equal(diff_build(&code, &new_run.selection, &old_run.selection, plain, &diff),
                     ERR_OK);
    assert_int_equal(
        finding_changes_build(&diff, &new_run.selection, &old_run.selection, threshold, &changes),
        ERR_OK);
    size_t count = 0;
    while (count < CHANGES_MAX && (wanted[count].old != 0 || wanted[count].new != 0)) {
        count++;
    }
    for (size_t i = 0; i < changes.items.len && i < count; i++) {
        check_change(i, &diff, &changes.items.items[i], &wanted[i]);
    }
    assert_int_equal(changes.items.len, count);
}

#define KIB 1024.0

static void each_finding_has_a_verdict(void **state)
{
    (void)state;
    static const struct {
        struct run old;
        struct run new;
        struct wanted_change wanted[CHANGES_MAX + 1];
    } cases[] = {
        // the leak is mended, the rest is as before
        {{4096, 20000, 64},
         {4096, 20000, 0},
         {{FINDING_GROWTH, DIFF_GONE, "leak", 6400 * KIB, 0},
          {FINDING_PEAK, DIFF_SAME, "load", 4096 * KIB, 4096 * KIB},
          {FINDING_CHURN, DIFF_SAME, "split", 4000000, 4000000}}},
        // and the other way round
        {{4096, 0, 0},
         {4096, 0, 64},
         {{FINDING_GROWTH, DIFF_NEW, "leak", 0, 6400 * KIB},
          {FINDING_PEAK, DIFF_SAME, "load", 4096 * KIB, 4096 * KIB}}},
        // a peak below the limit of findings before: it has a figure all the same
        {{512, 0, 0}, {2048, 0, 0}, {{FINDING_PEAK, DIFF_GROWN, "load", 512 * KIB, 2048 * KIB}}},
        {{0, 0, 0}, {2048, 0, 0}, {{FINDING_PEAK, DIFF_NEW, "load", 0, 2048 * KIB}}},
        {{2048, 0, 0}, {0, 0, 0}, {{FINDING_PEAK, DIFF_GONE, "load", 2048 * KIB, 0}}},
        {{2048, 0, 0}, {512, 0, 0}, {{FINDING_PEAK, DIFF_SHRUNK, "load", 2048 * KIB, 512 * KIB}}},
        // churn changes by more bytes, and weighs less than a leak
        {{0, 20000, 64},
         {0, 60000, 0},
         {{FINDING_GROWTH, DIFF_GONE, "leak", 6400 * KIB, 0},
          {FINDING_CHURN, DIFF_GROWN, "split", 4000000, 12000000}}},
        // within the threshold
        {{10000, 0, 0},
         {10099, 0, 0},
         {{FINDING_PEAK, DIFF_SAME, "load", 10000 * KIB, 10099 * KIB}}},
        {{10000, 0, 0},
         {10101, 0, 0},
         {{FINDING_PEAK, DIFF_GROWN, "load", 10000 * KIB, 10101 * KIB}}},
        {{0, 0, 0}, {0, 0, 0}, {{0}}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check(&cases[i].old, &cases[i].new, THRESHOLD, cases[i].wanted);
    }
}

static void a_larger_threshold_hides_a_change(void **state)
{
    (void)state;
    const struct wanted_change same[] = {{FINDING_PEAK, DIFF_SAME, "load", 4096 * KIB, 6000 * KIB},
                                         {0}};
    const struct wanted_change grown[] = {
        {FINDING_PEAK, DIFF_GROWN, "load", 4096 * KIB, 6000 * KIB}, {0}};
    check(&(struct run){.peak_kib = 4096}, &(struct run){.peak_kib = 6000}, 0.5, same);
    check(&(struct run){.peak_kib = 4096}, &(struct run){.peak_kib = 6000}, 0.4, grown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_finding_has_a_verdict),
        cmocka_unit_test(a_larger_threshold_hides_a_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
