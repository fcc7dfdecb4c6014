// SPDX-License-Identifier: MIT
// report_functions: prints functions by inclusive and self cost, and the callers and callees of
// some of them.
//
//    inclusive                 self
//     57.2 MiB   100%          0 B      0%  main  [server]
//
// Wrapper frames are folded, so the self cost of a function is that of its call sites.
// A recursive function counts once for each allocation (profile/tables/function_costs.h).
#include "base/compiler.h"
#include "base/minmax.h"
#include "cli/report/report_lines.h"
#include "cli/report/report_views.h"
#include "cli/text/screen_text.h"
#include "profile/select/pattern.h"
#include "profile/tables/function_costs.h"
#include "views_json/layout/view_csv.h"
#include "views_json/views/views.h"

enum {
    FUNCTIONS_BY_DEFAULT = 20,
    CALLERS_BY_DEFAULT = 10, // of each kind
    MATCHES_MAX = 20,        // functions whose callers are shown in text
};

struct tables {
    struct function_trees trees;
    struct function_costs functions;
    struct ranked_key_vec ranked;
};

static void tables_release(struct tables *tables)
{
    function_trees_release(&tables->trees);
    function_costs_release(&tables->functions);
    ranked_key_vec_release(&tables->ranked);
}

static MUST_USE enum err
build_tables(const struct report *report, enum call_tree_frames frames, struct tables *out)
{
    TRY(function_trees_build(report->code, &report->selection, report_old_selection(report), frames,
                             &out->trees));
    TRY(function_costs_build(&out->trees, BY_FUNCTION, 0, &out->functions));
    return function_costs_rank(&out->functions, false, report_view_cost(report), SCORE_LARGER,
                               &out->ranked);
}

static void print_costs(const struct report *report,
                        FILE *out,
                        const struct function_costs *costs,
                        uint32_t key,
                        bool is_self)
{
    const struct keyed_costs *new = &costs->sides[SIDE_NEW];
    const struct keyed_costs *old = &costs->sides[SIDE_OLD];
    report_print_sides(report, out, keyed_costs_at(is_self ? &new->self : &new->inclusive, key),
                       keyed_costs_at(is_self ? &old->self : &old->inclusive, key),
                       costs_get(&report->summary.costs, report_view_cost(report)));
}

enum err report_functions_text(const struct report *report, FILE *out)
{
    CLEANUP(tables_release) struct tables tables = {0};
    char title[96];
    (void)snprintf(title, sizeof(title), "FUNCTIONS: %s, inclusive and self",
                   profile_cost_info(report->profile, report_view_cost(report)).phrase); // fits
    TRY(build_tables(report, report_view_frames(report), &tables));
    report_view_title(report, out, title);
    const size_t columns = report_sides_columns(report);
    (void)fprintf(out, "  %*s  %*s\n", (int)columns - 2, "inclusive", (int)columns - 2, "self");
    const size_t shown =
        limited_u64(tables.ranked.len, report_view_limit(report, FUNCTIONS_BY_DEFAULT));
    for (size_t i = 0; i < shown; i++) {
        uint32_t key = tables.ranked.items[i].key;
        (void)fputs("  ", out);
        print_costs(report, out, &tables.functions, key, false);
        print_costs(report, out, &tables.functions, key, true);
        report_print_function(report, out, key, 0, 2 + 2 * columns);
    }
    report_print_rest(out, tables.ranked.len, shown, "more function", "more functions");
    return ERR_OK;
}

// The functions that match, and the tables that have their costs: those with folded wrapper frames
// unless a function is folded everywhere.
struct matches {
    struct tables folded; // empty with --show-wrappers
    struct tables whole;
    struct u32_vec keys; // the most expensive first
};

static void matches_release(struct matches *matches)
{
    tables_release(&matches->folded);
    tables_release(&matches->whole);
    u32_vec_release(&matches->keys);
}

static const struct tables *tables_of(const struct matches *matches, uint32_t key)
{
    return function_costs_have(&matches->folded.functions, key) ? &matches->folded
                                                                : &matches->whole;
}

static MUST_USE enum err find_matches(const struct report *report, struct matches *out)
{
    if (report_view_frames(report) == CALL_TREE_SITES) {
        TRY(build_tables(report, CALL_TREE_SITES, &out->folded));
    }
    TRY(build_tables(report, CALL_TREE_ALL, &out->whole));
    struct err_info info = {0}; // the expression was compiled before, so it is valid
    CLEANUP(pattern_release) struct pattern pattern = {0};
    TRY(pattern_init(&pattern, PATTERN_REGEX, report->options->callers, "--callers", &info));
    for (uint32_t i = 0; i < out->whole.ranked.len; i++) {
        const uint32_t key = out->whole.ranked.items[i].key;
        if (pattern_matches_function(&pattern, code_union_name(report->code, key))) {
            TRY(u32_vec_push(&out->keys, key));
        }
        TRY(pattern_result(&pattern, &info));
    }
    if (out->keys.len == 0 && out->whole.ranked.len > 0) {
        CLEANUP(strbuf_release) struct strbuf shown = {0};
        screen_append(&shown, report->options->callers);
        // No other place to report an error.
        (void)fprintf(stderr, "cairn: --callers: no function matches \"%s\"\n",
                      strbuf_text(&shown));
    }
    return ERR_OK;
}

// Print callers or callees. The last key of either table is not a function.
static MUST_USE enum err print_neighbours(const struct report *report,
                                          FILE *out,
                                          const struct tables *tables,
                                          enum function_key by,
                                          uint32_t function)
{
    CLEANUP(function_costs_release) struct function_costs costs = {0};
    CLEANUP(ranked_key_vec_release) struct ranked_key_vec keys = {0};
    TRY(function_costs_build(&tables->trees, by, function, &costs));
    TRY(function_costs_rank(&costs, false, report_view_cost(report), SCORE_LARGER, &keys));
    (void)fprintf(out, "    %s\n", by == BY_CALLER ? "called by" : "calls");
    size_t limit = report_view_limit(report, CALLERS_BY_DEFAULT);
    const size_t shown = limited_u64(keys.len, limit);
    for (size_t i = 0; i < shown; i++) {
        uint32_t key = keys.items[i].key;
        (void)fputs("      ", out);
        print_costs(report, out, &costs, key, false);
        if (key == report->code->origins.len) {
            (void)fprintf(out, "%s\n",
                          by == BY_CALLER ? "(the thread's entry)" : "(it allocates itself)");
        } else {
            report_print_function(report, out, key, 0, 6 + report_sides_columns(report));
        }
    }
    (void)fputs(keys.len > shown ? "    " : "", out);
    report_print_rest(out, keys.len, shown, "more", "more");
    return ERR_OK;
}

enum err report_callers_text(const struct report *report, FILE *out)
{
    CLEANUP(matches_release) struct matches matches = {0};
    char title[96];
    (void)snprintf(title, sizeof(title), "CALLERS AND CALLEES: %s",
                   profile_cost_info(report->profile, report_view_cost(report)).phrase); // fits
    TRY(find_matches(report, &matches));
    report_view_title(report, out, title);
    if (matches.keys.len == 0) {
        (void)fputs("     nothing\n", out);
    }
    for (size_t i = 0; i < matches.keys.len && i < MATCHES_MAX; i++) {
        const uint32_t key = matches.keys.items[i];
        const struct tables *tables = tables_of(&matches, key);
        (void)fputs(i > 0 ? "\n  " : "  ", out);
        print_costs(report, out, &tables->functions, key, false);
        report_print_function(report, out, key, 0, 2 + report_sides_columns(report));
        TRY(print_neighbours(report, out, tables, BY_CALLER, key));
        TRY(print_neighbours(report, out, tables, BY_CALLEE, key));
    }
    if (matches.keys.len > MATCHES_MAX) {
        (void)fprintf(out, "\n  and ");
        report_print_counted(out, matches.keys.len - MATCHES_MAX, "more function", "more functions",
                             " that match\n");
    }
    return ERR_OK;
}

enum err report_functions_json(const struct report *report, struct view *view)
{
    const struct functions_options options = {.frames = report_view_frames(report),
                                              .limit =
                                                  report_view_limit(report, FUNCTIONS_BY_DEFAULT)};
    VIEW_OBJECT(view, "functions", view_functions(view, &options));
    return ERR_OK;
}

enum err report_callers_json(const struct report *report, struct view *view)
{
    CLEANUP(matches_release) struct matches matches = {0};
    TRY(find_matches(report, &matches));
    json_key_array(view->w, "callers");
    for (size_t i = 0; i < matches.keys.len; i++) {
        const uint32_t function = matches.keys.items[i];
        view_csv_tag(view, 0, code_union_name(report->code, function));
        json_begin_object(view->w);
        TRY(view_function_detail(view, &tables_of(&matches, function)->trees, function));
        json_end_object(view->w);
    }
    json_end_array(view->w);
    return ERR_OK;
}
