// SPDX-License-Identifier: MIT
// Tests of comparisons: two drawn recordings, and the changes that follow from their texts.
#include "profile/compare/diff.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "profile/compare/diff_verdict.h"
#include "profile/test_support/drawn_profile.h"

struct compared {
    struct drawn_profile sides[SIDE_COUNT];
    struct code_union code;
    struct diff diff;
};

static void compared_release(struct compared *compared)
{
    diff_release(&compared->diff);
    code_union_release(&compared->code);
    drawn_profile_release(&compared->sides[SIDE_OLD]);
    drawn_profile_release(&compared->sides[SIDE_NEW]);
}

// What the peaks may be wrong by.
struct peak_errors {
    uint64_t bytes[SIDE_COUNT];
    uint64_t flight_bytes; // the part of each that is only blocks in flight
};

static void compare(const char *old,
                    const char *new,
                    struct diff_units units,
                    const struct peak_errors *errors,
                    struct compared *out)
{
    drawn_profile_open(new, &out->sides[SIDE_NEW]);
    drawn_profile_open(old, &out->sides[SIDE_OLD]);
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        struct rec_totals *totals = &out->sides[side].profile->recording.totals;
        totals->peak_error_bytes = errors->bytes[side];
        totals->peak_flight_bytes = errors->flight_bytes;
    }
    assert_int_equal(
        code_union_build(out->sides[SIDE_NEW].profile, out->sides[SIDE_OLD].profile, &out->code),
        ERR_OK);
    assert_int_equal(diff_build(&out->code, &out->sides[SIDE_NEW].selection,
                                &out->sides[SIDE_OLD].selection, units, &out->diff),
                     ERR_OK);
}

static const struct diff_units g_plain = {{1, 1}};
static const struct peak_errors g_exact;

// allocations allocated_bytes frees freed_bytes temporary temporary_bytes peak_blocks peak_bytes
static const char g_old[] = "main;load;strdup 10 100 4 40 2 20 6 60\n"
                            "main;send 8 80 8 80 0 0 1 10\n"
                            "main;gone 1 5 1 5 0 0 1 5\n"
                            "main;same 3 30 0 0 0 0 3 30\n"
                            "main;load 1 1 1 1 0 0 0 0\n";
static const char g_new[] = "main;load;strdup 14 140 4 40 5 50 10 100\n"
                            "main;load 1 4 1 4 0 0 0 0\n"
                            "main;send 6 60 6 60 0 0 0 0\n"
                            "main;fresh 2 70 0 0 1 35 2 70\n"
                            "main;same 3 30 0 0 0 0 3 30\n";

struct wanted_entry {
    const char *function;
    double old;
    double new;
    enum diff_class class;
};

enum {
    ENTRIES_MAX = 5
};

// The changed functions by cost, the largest change first, ties in the order of their nodes.
static const struct {
    enum cost cost;
    struct wanted_entry entries[ENTRIES_MAX];
} g_ranked[] = {
    {COST_ALLOCATIONS,
     {{"load", 11, 15, DIFF_GROWN},
      {"send", 8, 6, DIFF_SHRUNK},
      {"fresh", 0, 2, DIFF_NEW},
      {"gone", 1, 0, DIFF_GONE}}},
    {COST_ALLOCATED_BYTES,
     {{"fresh", 0, 70, DIFF_NEW},
      {"load", 101, 144, DIFF_GROWN},
      {"send", 80, 60, DIFF_SHRUNK},
      {"gone", 5, 0, DIFF_GONE}}},
    {COST_PEAK_BYTES,
     {{"fresh", 0, 70, DIFF_NEW},
      {"load", 60, 100, DIFF_GROWN},
      {"send", 10, 0, DIFF_SHRUNK},
      {"gone", 5, 0, DIFF_GONE}}},
    {COST_TEMPORARY, {{"load", 2, 5, DIFF_GROWN}, {"fresh", 0, 1, DIFF_NEW}}},
    {COST_LEAKED_BYTES, {{"fresh", 0, 70, DIFF_NEW}, {"load", 60, 100, DIFF_GROWN}}},
};

static void check_change(const char *name, struct diff_change found, struct wanted_entry wanted)
{
    const double change = wanted.new - wanted.old;
    if (fabs(found.old - wanted.old) > 1e-9 || fabs(found.new - wanted.new) > 1e-9 ||
        fabs(found.change - change) > 1e-9 || found.class != wanted.class) {
        fail_msg("%s: %g -> %g (%g, %s), not %g -> %g (%g, %s)", name, found.old, found.new,
                 found.change, diff_class_name(found.class), wanted.old, wanted.new, change,
                 diff_class_name(wanted.class));
    }
}

static void changed_functions_are_ranked_by_their_change(void **state)
{
    (void)state;
    CLEANUP(compared_release) struct compared c = {0};
    compare(g_old, g_new, g_plain, &g_exact, &c);
    assert_int_equal(c.diff.entries.len, 5); // strdup is a part of load
    for (size_t i = 0; i < ARRAY_LEN(g_ranked); i++) {
        CLEANUP(u32_vec_release) struct u32_vec ids = {0};
        assert_int_equal(diff_ranked(&c.diff, g_ranked[i].cost, &ids), ERR_OK);
        for (size_t at = 0; at < ids.len; at++) {
            const struct wanted_entry *wanted = &g_ranked[i].entries[at];
            assert_non_null(wanted->function);
            const struct diff_entry *entry = &c.diff.entries.items[ids.items[at]];
            assert_string_equal(code_union_name(&c.code, entry->function), wanted->function);
            check_change(wanted->function,
                         diff_entry_change(&c.diff, ids.items[at], g_ranked[i].cost), *wanted);
        }
        assert_true(ids.len == ENTRIES_MAX || g_ranked[i].entries[ids.len].function == NULL);
    }
}

// load has stacks of its own and of strdup. One cost of 1 in the old recording makes none new.
static void stacks_of_a_function_are_ranked(void **state)
{
    (void)state;
    CLEANUP(compared_release) struct compared c = {0};
    compare(g_old, g_new, g_plain, &g_exact, &c);
    uint32_t load = 0;
    while (strcmp(code_union_name(&c.code, c.diff.entries.items[load].function), "load") != 0) {
        load++;
    }
    assert_int_equal(c.diff.entries.items[load].stack_count, 2);
    static const struct {
        enum cost cost;
        size_t count;
        struct wanted_entry stacks[2];
    } cases[] = {
        {COST_ALLOCATIONS, 1, {{"strdup", 10, 14, DIFF_GROWN}}},
        {COST_ALLOCATED_BYTES, 2, {{"strdup", 100, 140, DIFF_GROWN}, {"load", 1, 4, DIFF_GROWN}}},
        {COST_TEMPORARY, 1, {{"strdup", 2, 5, DIFF_GROWN}}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(u32_vec_release) struct u32_vec nodes = {0};
        assert_int_equal(diff_ranked_stacks(&c.diff, load, cases[i].cost, &nodes), ERR_OK);
        assert_int_equal(nodes.len, cases[i].count);
        for (size_t at = 0; at < nodes.len; at++) {
            const uint32_t function = c.diff.tree.functions.items[nodes.items[at]];
            assert_string_equal(code_union_name(&c.code, function), cases[i].stacks[at].function);
            check_change(cases[i].stacks[at].function,
                         diff_stack_change(&c.diff, nodes.items[at], cases[i].cost),
                         cases[i].stacks[at]);
        }
    }
}

// Only amounts are divided by the unit; what is equal after the division has not changed.
static void amounts_are_divided_by_the_unit(void **state)
{
    (void)state;
    static const struct {
        enum cost cost;
        bool is_amount;
    } costs[COST_COUNT] = {
        {COST_PEAK_BYTES, false},        {COST_PEAK_BLOCKS, false},    {COST_ALLOCATIONS, true},
        {COST_ALLOCATED_BYTES, true},    {COST_FREES, true},           {COST_FREED_BYTES, true},
        {COST_TEMPORARY, true},          {COST_TEMPORARY_BYTES, true}, {COST_LEAKED_BYTES, true},
        {COST_LEAKED_ALLOCATIONS, true}, {COST_OWN_PEAK_BYTES, false},
    };
    CLEANUP(compared_release) struct compared c = {0};
    const struct diff_units units = {.sides = {[SIDE_NEW] = 0.3, [SIDE_OLD] = 0.1}};
    compare("main;f 7 70 6 60 5 50 1 10 10\n", "main;f 21 210 18 180 15 150 3 30 30\n", units,
            &g_exact, &c);
    for (size_t i = 0; i < COST_COUNT; i++) {
        assert_int_equal(diff_is_amount(costs[i].cost), costs[i].is_amount);
        const struct diff_change change = diff_total_change(&c.diff, costs[i].cost);
        assert_int_equal(change.class, costs[i].is_amount ? DIFF_SAME : DIFF_GROWN);
        assert_true(costs[i].is_amount == (change.change == 0));
    }
    check_change("f", diff_total_change(&c.diff, COST_PEAK_BYTES),
                 (struct wanted_entry){"f", 10, 30, DIFF_GROWN});
    assert_true(fabs(diff_total_change(&c.diff, COST_ALLOCATIONS).old - 70) < 1e-9);
}

// The change of the peak is plain. What both peaks may be wrong by in the program's own order is
// its error, and decides whether it grew; blocks in flight do not.
static void a_peak_has_the_errors_of_both_sides(void **state)
{
    (void)state;
    static const struct {
        uint64_t old_bytes;
        uint64_t new_bytes;
        uint64_t errors_bytes[SIDE_COUNT];
        uint64_t flight_bytes; // of each error
        double change_error;
        enum diff_class class;
        bool has_grown; // by more than a tenth
    } cases[] = {
        {100, 130, {0, 0}, 0, 0, DIFF_GROWN, true},
        {100, 130, {4, 6}, 0, 10, DIFF_GROWN, true},
        {130, 100, {4, 6}, 0, 10, DIFF_SHRUNK, false},
        {100, 130, {10, 10}, 0, 20, DIFF_GROWN, false},
        {100, 130, {10, 20}, 0, 30, DIFF_GROWN, false},
        {100, 130, {500, 500}, 500, 0, DIFF_GROWN, true},
        {100, 130, {504, 506}, 500, 10, DIFF_GROWN, true},
        {100, 130, {0, 0}, 7, 0, DIFF_GROWN, true}, // a forged file
        {100, 100, {1, 1}, 0, 2, DIFF_SAME, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char texts[SIDE_COUNT][64];
        (void)snprintf(texts[SIDE_OLD], sizeof(texts[0]), "main;f 1 %lu 0 0 0 0 1 %lu\n",
                       (unsigned long)cases[i].old_bytes, (unsigned long)cases[i].old_bytes);
        (void)snprintf(texts[SIDE_NEW], sizeof(texts[0]), "main;f 1 %lu 0 0 0 0 1 %lu\n",
                       (unsigned long)cases[i].new_bytes, (unsigned long)cases[i].new_bytes);
        CLEANUP(compared_release) struct compared c = {0};
        const struct peak_errors errors = {
            .bytes = {cases[i].errors_bytes[0], cases[i].errors_bytes[1]},
            .flight_bytes = cases[i].flight_bytes};
        compare(texts[SIDE_OLD], texts[SIDE_NEW], g_plain, &errors, &c);
        const struct diff_change peak = diff_total_change(&c.diff, COST_PEAK_BYTES);
        const double plain = (double)cases[i].new_bytes - (double)cases[i].old_bytes;
        if (peak.change != plain || peak.change_error != cases[i].change_error ||
            peak.class != cases[i].class ||
            diff_is_beyond(&c.diff, COST_PEAK_BYTES, &peak, 0.1) != cases[i].has_grown) {
            fail_msg("case %zu: %g ± %g, %s", i, peak.change, peak.change_error,
                     diff_class_name(peak.class));
        }
        const struct diff_change bytes = diff_total_change(&c.diff, COST_ALLOCATED_BYTES);
        assert_true(bytes.change == plain && bytes.change_error == 0);
        // Estimates have errors, but the whole's peak has only those of both sides, which are
        // independent then.
        for (size_t side = 0; side < SIDE_COUNT; side++) {
            c.diff.sampling[side] = (struct sampling){.is_sampled = true, .bytes = 4096};
        }
        const struct diff_change estimate = diff_total_change(&c.diff, COST_PEAK_BYTES);
        const double independent = hypot(peak.old_error, peak.new_error);
        assert_true(fabs(estimate.change_error - independent) < 1e-9 && estimate.change == plain);
        assert_true(diff_total_change(&c.diff, COST_ALLOCATED_BYTES).change_error > 0);
        c.diff.is_everything[SIDE_NEW] = false;
        const struct diff_change part = diff_total_change(&c.diff, COST_PEAK_BYTES);
        assert_true(part.change_error > independent && part.old_error == peak.old_error);
    }
}

// The verdict names the whole, or the function that grew most, of each judged cost.
static void what_grew_beyond_the_threshold_is_found(void **state)
{
    (void)state;
    static const char even[] = "main;f 100 1000 0 0 0 0 1 1000\nmain;g 100 1000 0 0 0 0 1 1000\n";
    static const struct {
        const char *old;
        const char *new;
        uint64_t threshold; // in hundredths of a percent
        size_t findings;
        const char *said;
    } cases[] = {
        {even, even, 0, 0, "nothing grew beyond 0%"},
        {even, "main;f 102 1000 0 0 0 0 1 1000\nmain;g 100 1000 0 0 0 0 1 1000\n", 100, 0,
         "nothing grew beyond 1%"}, // 1 % exactly
        {even, "main;f 103 1000 0 0 0 0 1 1000\nmain;g 100 1000 0 0 0 0 1 1000\n", 100, 2,
         "grew beyond 1%: allocations +3 (+1.5%)"},
        {even, "main;f 160 1000 0 0 0 0 1 1000\nmain;g 40 1000 0 0 0 0 1 1000\n", 100, 1,
         "no total grew beyond 1%; in one function: allocations of f +60 (+60.0%)"},
        {even, "main;f 140 1000 0 0 0 0 1 1100\nmain;g 130 1000 0 0 0 0 1 1050\n", 500, 4,
         "grew beyond 5%: peak +150 B (+7.5%), allocations +70 (+35.0%)"},
        {even, "main;f 160 1000 0 0 0 0 1 1100\nmain;g 40 1000 0 0 0 0 1 1000\n", 100, 3,
         "grew beyond 1%: peak +100 B (+5.0%); in one function: allocations of f +60 (+60.0%)"},
        {even, "main;f 100 1000 0 0 3 30 1 1000\nmain;g 100 1000 0 0 0 0 1 1000\n", 100, 2,
         "grew beyond 1%: temporary +3 (from 0)"},
    };
    static const enum cost judged[] = {COST_PEAK_BYTES, COST_ALLOCATIONS, COST_TEMPORARY};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(compared_release) struct compared c = {0};
        compare(cases[i].old, cases[i].new, g_plain, &g_exact, &c);
        CLEANUP(diff_finding_vec_release) struct diff_finding_vec findings = {0};
        CLEANUP(strbuf_release) struct strbuf text = {0};
        assert_int_equal(diff_judge(&c.diff, judged, ARRAY_LEN(judged),
                                    (double)cases[i].threshold / DIFF_THRESHOLD_UNIT, &findings),
                         ERR_OK);
        const struct diff_verdict verdict = {.findings = &findings,
                                             .costs = judged,
                                             .cost_count = ARRAY_LEN(judged),
                                             .threshold = cases[i].threshold};
        diff_verdict_append(&c.diff, &verdict, &text);
        assert_string_equal(strbuf_text(&text), cases[i].said);
        assert_int_equal(findings.len, cases[i].findings);
        assert_int_equal(diff_has_grown(&findings), strncmp(cases[i].said, "grew", 4) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changed_functions_are_ranked_by_their_change),
        cmocka_unit_test(stacks_of_a_function_are_ranked),
        cmocka_unit_test(amounts_are_divided_by_the_unit),
        cmocka_unit_test(a_peak_has_the_errors_of_both_sides),
        cmocka_unit_test(what_grew_beyond_the_threshold_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
