// SPDX-License-Identifier: MIT
// Tests of budgets: each measure of a summary, at its limit and beside it.
#include "profile/compare/budget.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "profile/accuracy/sampling.h"
#include "profile/test_support/drawn_profile.h"

static const struct summary g_summary = {
    .costs.values = {[COST_PEAK_BYTES] = 1000,
                     [COST_PEAK_BLOCKS] = 7,
                     [COST_ALLOCATIONS] = 300,
                     [COST_ALLOCATED_BYTES] = 4000,
                     [COST_FREES] = 250,
                     [COST_FREED_BYTES] = 3500,
                     [COST_TEMPORARY] = 100,
                     [COST_TEMPORARY_BYTES] = 600,
                     [COST_LEAKED_BYTES] = 500,
                     [COST_LEAKED_ALLOCATIONS] = 50,
                     [COST_OWN_PEAK_BYTES] = 1100},
    .peak_rss_bytes = 9000,
};

// An exact recording. Its totals are those of the summary, which is the test's own.
static void open_exact(struct drawn_profile *out)
{
    drawn_profile_open("main;f 1 1\n", out);
}

static bool is_broken(const struct drawn_profile *drawn,
                      const struct summary *summary,
                      enum budget_measure measure,
                      uint64_t limit)
{
    return budget_judge(&drawn->selection, summary, measure, limit) == BUDGET_BROKEN;
}

// The figure of each measure; all but the share are broken by one less.
static void a_budget_is_broken_beyond_its_figure(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t value;
        bool has_stacks;
    } cases[BUDGET_MEASURE_COUNT] = {
        [BUDGET_PEAK] = {"max-peak", 1000, true},
        [BUDGET_ALLOCATIONS] = {"max-allocations", 300, true},
        [BUDGET_ALLOCATED] = {"max-allocated", 4000, true},
        [BUDGET_LEAKED] = {"max-leaked", 500, true},
        [BUDGET_TEMPORARY_SHARE] = {"max-temporary-share", 3333, true}, // 33.3333... %
        [BUDGET_RSS] = {"max-rss", 9000, false},
    };
    CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
    open_exact(&drawn);
    for (int i = 0; i < BUDGET_MEASURE_COUNT; i++) {
        const enum budget_measure measure = (enum budget_measure)i;
        const bool is_rounded = measure == BUDGET_TEMPORARY_SHARE;
        const struct budget_figure figure = budget_figure_of(&drawn.selection, &g_summary, measure);
        assert_int_equal(budget_find(cases[i].name), measure);
        assert_string_equal(budget_get_info(measure)->name, cases[i].name);
        assert_int_equal(budget_get_info(measure)->has_stacks, cases[i].has_stacks);
        assert_int_equal(figure.value, cases[i].value);
        assert_true(figure.at_least == figure.value && figure.at_most == figure.value);
        assert_true(figure.error == 0 && !figure.is_estimate);
        assert_true(is_broken(&drawn, &g_summary, measure, cases[i].value - 1));
        assert_int_equal(is_broken(&drawn, &g_summary, measure, cases[i].value), is_rounded);
        assert_false(is_broken(&drawn, &g_summary, measure, cases[i].value + 1));
    }
    assert_int_equal(budget_find("max-peaks"), BUDGET_MEASURE_COUNT);
}

static void a_share_of_nothing_is_nothing(void **state)
{
    (void)state;
    const struct summary nothing = {0};
    const struct summary all = {
        .costs.values = {[COST_ALLOCATIONS] = UINT64_MAX, [COST_TEMPORARY] = UINT64_MAX}};
    CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
    open_exact(&drawn);
    const enum budget_measure measure = BUDGET_TEMPORARY_SHARE;
    assert_int_equal(budget_figure_of(&drawn.selection, &nothing, measure).value, 0);
    assert_false(is_broken(&drawn, &nothing, measure, 0));
    assert_int_equal(budget_figure_of(&drawn.selection, &all, measure).value, 10000);
    assert_false(is_broken(&drawn, &all, measure, 10000));
    assert_true(is_broken(&drawn, &all, measure, 9999));
}

// An estimate breaks a budget only beyond its error, and keeps it only if the error fits, too.
static void the_error_of_an_estimate_decides(void **state)
{
    (void)state;
    enum {
        BYTES = 65536,
        LEAKED = 1048576,
        ERROR = 556092, // 2 * sqrt(9 / 8 * BYTES * LEAKED)
        UNSEEN = 3 * BYTES,
    };
    static const struct {
        enum budget_measure measure;
        bool is_part;
        uint64_t limit;
        enum budget_verdict verdict;
    } cases[] = {
        {BUDGET_LEAKED, false, LEAKED - ERROR - 1, BUDGET_BROKEN},
        {BUDGET_LEAKED, false, LEAKED - ERROR, BUDGET_UNCERTAIN},
        {BUDGET_LEAKED, true, LEAKED, BUDGET_UNCERTAIN},
        {BUDGET_LEAKED, false, LEAKED + ERROR - 1, BUDGET_UNCERTAIN},
        {BUDGET_LEAKED, false, LEAKED + ERROR, BUDGET_KEPT},
        {BUDGET_LEAKED, false, 0, BUDGET_BROKEN},
        {BUDGET_ALLOCATED, true, 0, BUDGET_UNCERTAIN}, // no block of it was chosen
        {BUDGET_ALLOCATED, true, UNSEEN - 1, BUDGET_UNCERTAIN},
        {BUDGET_ALLOCATED, true, UNSEEN, BUDGET_KEPT},
        {BUDGET_ALLOCATED, false, 69999, BUDGET_BROKEN}, // exact: all that were made
        {BUDGET_ALLOCATED, false, 70000, BUDGET_KEPT},
        {BUDGET_ALLOCATIONS, false, 999, BUDGET_BROKEN},
        {BUDGET_ALLOCATIONS, false, 1000, BUDGET_KEPT},
        {BUDGET_PEAK, false, 4999, BUDGET_BROKEN}, // it has bounds of its own
        {BUDGET_PEAK, false, 5000, BUDGET_UNCERTAIN},
        {BUDGET_PEAK, false, 8999, BUDGET_UNCERTAIN},
        {BUDGET_PEAK, false, 9000, BUDGET_KEPT},
        {BUDGET_RSS, false, 8999, BUDGET_BROKEN},
        {BUDGET_RSS, false, 9000, BUDGET_KEPT},
    };
    const struct summary summary = {
        .costs.values = {[COST_PEAK_BYTES] = 6000, [COST_LEAKED_BYTES] = LEAKED},
        .peak_below_bytes = 1000,
        .peak_error_bytes = 7000, // with blocks in flight
        .peak_order_error_bytes = 3000,
        .peak_rss_bytes = 9000};
    CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
    drawn_profile_open("main;f 1 1\n", &drawn);
    struct rec_totals *totals = &drawn.profile->recording.totals;
    totals->sample_bytes = BYTES;
    totals->represented_allocations = totals->allocations;
    totals->represented_bytes = totals->allocated_bytes;
    totals->unsampled_allocations = 1000;
    totals->unsampled_bytes = 70000;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        drawn.selection.is_everything = !cases[i].is_part;
        const enum budget_verdict verdict =
            budget_judge(&drawn.selection, &summary, cases[i].measure, cases[i].limit);
        if (verdict != cases[i].verdict) {
            fail_msg("case %zu: %d, not %d", i, (int)verdict, (int)cases[i].verdict);
        }
    }
}

// The error of a share comes from its part and from the rest, which have that of all together.
static void the_error_of_a_share(void **state)
{
    (void)state;
    const struct sampling sampling = {.is_sampled = true, .bytes = 1000};
    struct costs costs = {.values = {[COST_ALLOCATIONS] = 100000},
                          .sizes = {.inverse_lengths = 1000, .shortest_length = 100}};
    const double of_all = 2 * sqrt(9.0 / 8 * 1000 * 1000) / 100000; // of all allocations
    static const struct {
        uint64_t temporary;
        double error; // of of_all
    } cases[] = {{0, 0}, {25000, 0.433}, {50000, 0.5}, {75000, 0.433}, {100000, 0}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        costs.values[COST_TEMPORARY] = cases[i].temporary;
        const double error =
            sampling_error_of_share(&sampling, &costs, COST_TEMPORARY, COST_ALLOCATIONS);
        assert_true(fabs(error - cases[i].error * of_all) < 0.0001);
    }
    costs.values[COST_ALLOCATIONS] = 0;
    assert_true(sampling_error_of_share(&sampling, &costs, COST_TEMPORARY, COST_ALLOCATIONS) == 0);
}

// A limit on RSS between what must count and what may count is not decided.
static void doubted_pages_decide_no_limit(void **state)
{
    (void)state;
    static const struct {
        uint64_t limit;
        enum budget_verdict verdict;
    } cases[] = {{8999, BUDGET_BROKEN},
                 {9000, BUDGET_UNCERTAIN},
                 {9999, BUDGET_UNCERTAIN},
                 {10000, BUDGET_KEPT}};
    const struct summary summary = {.peak_rss_bytes = 9000, .peak_rss_at_most = 10000};
    CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
    open_exact(&drawn);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(budget_judge(&drawn.selection, &summary, BUDGET_RSS, cases[i].limit),
                         cases[i].verdict);
    }
}

// A measure is known if each cost behind it is.
static void unknown_costs_make_measures_unknown(void **state)
{
    (void)state;
    static const struct {
        uint32_t unknown; // costs
        uint64_t rss_bytes;
        uint32_t measures; // that are unknown
    } cases[] = {
        {0, 1, 0},
        {0, 0, 1U << BUDGET_RSS},
        {1U << COST_PEAK_BYTES, 1, 1U << BUDGET_PEAK},
        {1U << COST_TEMPORARY, 1, 1U << BUDGET_TEMPORARY_SHARE},
        {1U << COST_ALLOCATIONS, 1, 1U << BUDGET_ALLOCATIONS | 1U << BUDGET_TEMPORARY_SHARE},
        {1U << COST_LEAKED_BYTES, 1, 1U << BUDGET_LEAKED},
        {1U << COST_FREES, 1, 0},
    };
    CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
    drawn_profile_open("main;f 1 1\n", &drawn);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct summary summary = {.peak_rss_bytes = cases[i].rss_bytes};
        drawn.selection.unknown = cases[i].unknown;
        for (int measure = 0; measure < BUDGET_MEASURE_COUNT; measure++) {
            assert_int_equal(
                budget_is_known(&drawn.selection, &summary, (enum budget_measure)measure),
                (cases[i].measures >> measure & 1) == 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_budget_is_broken_beyond_its_figure),
        cmocka_unit_test(a_share_of_nothing_is_nothing),
        cmocka_unit_test(the_error_of_an_estimate_decides),
        cmocka_unit_test(the_error_of_a_share),
        cmocka_unit_test(doubted_pages_decide_no_limit),
        cmocka_unit_test(unknown_costs_make_measures_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
