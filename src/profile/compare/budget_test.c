// SPDX-License-Identifier: MIT
// Tests of budgets: each measure of a summary, at its limit and beside it.
#include "profile/compare/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/compiler.h"
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
    for (int i = 0; i < BUDGET_MEASURE_COUNT; i++) {
        const enum budget_measure measure = (enum budget_measure)i;
        const bool is_rounded = measure == BUDGET_TEMPORARY_SHARE;
        assert_int_equal(budget_find(cases[i].name), measure);
        assert_string_equal(budget_get_info(measure)->name, cases[i].name);
        assert_int_equal(budget_get_info(measure)->has_stacks, cases[i].has_stacks);
        assert_int_equal(budget_value(&g_summary, measure), cases[i].value);
        assert_true(budget_is_broken(&g_summary, measure, cases[i].value - 1));
        assert_int_equal(budget_is_broken(&g_summary, measure, cases[i].value), is_rounded);
        assert_false(budget_is_broken(&g_summary, measure, cases[i].value + 1));
    }
    assert_int_equal(budget_find("max-peaks"), BUDGET_MEASURE_COUNT);
}

static void a_share_of_nothing_is_nothing(void **state)
{
    (void)state;
    const struct summary nothing = {0};
    const struct summary all = {
        .costs.values = {[COST_ALLOCATIONS] = UINT64_MAX, [COST_TEMPORARY] = UINT64_MAX}};
    assert_int_equal(budget_value(&nothing, BUDGET_TEMPORARY_SHARE), 0);
    assert_false(budget_is_broken(&nothing, BUDGET_TEMPORARY_SHARE, 0));
    assert_int_equal(budget_value(&all, BUDGET_TEMPORARY_SHARE), 10000);
    assert_false(budget_is_broken(&all, BUDGET_TEMPORARY_SHARE, 10000));
    assert_true(budget_is_broken(&all, BUDGET_TEMPORARY_SHARE, 9999));
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
        cmocka_unit_test(unknown_costs_make_measures_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
