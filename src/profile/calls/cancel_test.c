// SPDX-License-Identifier: MIT
// Tests that every query of a selection can be cancelled, at each of its checks, without leaks.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/text/strbuf.h"
#include "profile/calls/bottom_up_tree.h"
#include "profile/calls/call_sites.h"
#include "profile/calls/tree_view.h"
#include "profile/growth/growth.h"
#include "profile/model/code_union.h"
#include "profile/tables/histogram.h"
#include "profile/tables/summary.h"
#include "profile/time/top_series.h"
#include "recording/test_support/recording_text.h"

enum {
    STACKS = 300 // more than CANCEL_ASKS_EVERY
};

struct fixture {
    struct recording recording;
    struct profile *profile;
    struct code_union code;
};

static void fixture_release(struct fixture *fixture)
{
    code_union_release(&fixture->code);
    profile_close(fixture->profile);
    recording_release(&fixture->recording);
}

static void draw(struct fixture *fixture)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    for (unsigned i = 0; i < STACKS; i++) {
        strbuf_printf(&text, "app!main;app!f%u(f%u.c:1);app!g%u(g.c:2) 2 20 1 10 0 0 1 10 20\n", i,
                      i, i);
        strbuf_printf(&text, "@%u 2 20 1 10 0\ncohort %u - 1 10\n", i % 9, i % 9);
        strbuf_append_text(&text, "size 10 2 20\nlife 1 1 10\n");
    }
    struct err_info info = {0};
    if (recording_from_text(strbuf_text(&text), &fixture->recording, &info) != ERR_OK) {
        fail_msg("the drawing does not open: %s", info.text);
    }
    assert_int_equal(
        profile_from_recording(&fixture->recording, NULL, NULL, &fixture->profile, NULL), ERR_OK);
    assert_int_equal(code_union_build(fixture->profile, NULL, &fixture->code), ERR_OK);
}

static enum err ask_tree(const struct selection *selection,
                         const struct code_union *code,
                         enum call_tree_direction direction)
{
    struct tree_view_spec spec = {.direction = direction, .key = CALL_TREE_BY_LOCATION};
    CLEANUP(tree_view_release) struct tree_view tree = {0};
    return tree_view_build(code, selection, NULL, spec, &tree);
}

static enum err ask_top_down(const struct selection *selection, const struct code_union *code)
{
    return ask_tree(selection, code, CALL_TREE_TOP_DOWN);
}

static enum err ask_bottom_up(const struct selection *selection, const struct code_union *code)
{
    return ask_tree(selection, code, CALL_TREE_BOTTOM_UP);
}

static enum err ask_summary(const struct selection *selection, const struct code_union *code)
{
    (void)code;
    struct summary summary;
    return summary_build(selection, &summary);
}

static enum err ask_groups(const struct selection *selection, const struct code_union *code)
{
    (void)code;
    CLEANUP(group_vec_release) struct group_vec groups = {0};
    return groups_build(selection, GROUP_BY_MODULE, &groups);
}

static enum err ask_call_sites(const struct selection *selection, const struct code_union *code)
{
    (void)code;
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    return call_sites_build(selection, &sites);
}

static enum err ask_series(const struct selection *selection, const struct code_union *code)
{
    (void)code;
    CLEANUP(top_series_release) struct top_series series = {0};
    return top_series_build(selection, SERIES_LIVE_BYTES, ROW_GROUPS_BY_STACK, 5, &series);
}

static enum err ask_sizes(const struct selection *selection, const struct code_union *code)
{
    (void)code;
    CLEANUP(histogram_release) struct histogram histogram = {0};
    return histogram_build(selection, HISTOGRAM_SIZES, false, 5, &histogram);
}

static enum err ask_heat_map(const struct selection *selection, const struct code_union *code)
{
    (void)code;
    CLEANUP(heat_cell_vec_release) struct heat_cell_vec cells = {0};
    return heat_map_build(selection, &cells);
}

static enum err ask_growth(const struct selection *selection, const struct code_union *code)
{
    (void)code;
    CLEANUP(growth_release) struct growth growth = {0};
    return growth_build(selection, ROW_GROUPS_BY_STACK, SIZE_MAX, &growth);
}

static const struct query {
    const char *name;
    enum err (*ask)(const struct selection *selection, const struct code_union *code);
} queries[] = {
    {"top_down", ask_top_down}, {"bottom_up", ask_bottom_up}, {"summary", ask_summary},
    {"groups", ask_groups},     {"series", ask_series},       {"call_sites", ask_call_sites},
    {"histograms", ask_sizes},  {"heat_map", ask_heat_map},   {"growth", ask_growth},
};

// A callback that cancels after `after` calls.
struct patience {
    unsigned asked;
    unsigned after;
};

static enum err ask_patience(void *context)
{
    struct patience *patience = context;
    return ++patience->asked > patience->after ? ERR_CANCELLED : ERR_OK;
}

static void every_query_can_be_stopped(void **state)
{
    (void)state;
    CLEANUP(fixture_release) struct fixture fixture = {0};
    draw(&fixture);
    for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
        struct patience patience = {.after = 1000000};
        struct cancel cancel = {.ask = ask_patience, .context = &patience};
        struct filter filter = {.cancel = &cancel};
        CLEANUP(selection_release) struct selection selection = {0};
        assert_int_equal(profile_select(fixture.profile, &filter, &selection, NULL), ERR_OK);
        patience.asked = 0;
        cancel.steps = 0;
        assert_int_equal(queries[i].ask(&selection, &fixture.code), ERR_OK);
        unsigned times = patience.asked;
        if (times == 0) {
            fail_msg("%s never asks", queries[i].name);
        }
        for (unsigned after = 0; after < times; after++) {
            patience = (struct patience){.after = after};
            cancel.steps = 0;
            assert_int_equal(queries[i].ask(&selection, &fixture.code), ERR_CANCELLED);
            assert_int_equal(patience.asked, after + 1); // no further call
        }
    }
}

static void selecting_can_be_stopped(void **state)
{
    (void)state;
    CLEANUP(fixture_release) struct fixture fixture = {0};
    draw(&fixture);
    struct patience patience = {0};
    struct cancel cancel = {.ask = ask_patience, .context = &patience};
    const struct filter filters[] = {{.cancel = &cancel}, {.function = "f", .cancel = &cancel}};
    for (size_t i = 0; i < ARRAY_LEN(filters); i++) {
        struct selection selection = {0};
        patience.asked = 0;
        assert_int_equal(profile_select(fixture.profile, &filters[i], &selection, NULL),
                         ERR_CANCELLED);
        assert_null(selection.rows.items); // not changed
        assert_int_equal(patience.asked, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_query_can_be_stopped),
        cmocka_unit_test(selecting_can_be_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
