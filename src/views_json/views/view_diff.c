// SPDX-License-Identifier: MIT
// view_diff: the changes from an old recording to a new one, the findings among them, and the
// verdict.
#include "base/compiler.h"
#include "profile/compare/diff.h"
#include "views_json/layout/view_csv.h"
#include "views_json/views/views.h"

static void
write_change(struct view *view, const struct diff *diff, const struct diff_change change)
{
    json_key_double(view->w, "old", change.old);
    json_key_double(view->w, "new", change.new);
    json_key_double(view->w, "change", change.change);
    json_key_string(view->w, "class", diff_class_name(change.class));
    if (diff_has_errors(diff) || change.change_error > 0) {
        json_key_double(view->w, "old_error", change.old_error);
        json_key_double(view->w, "new_error", change.new_error);
        json_key_double(view->w, "change_error", change.change_error);
    }
}

static void write_function(struct view *view, uint32_t function)
{
    bool is_known = function != REC_NONE;
    json_key_string(view->w, "function", is_known ? code_union_name(view->code, function) : "");
    json_key_string(view->w, "module", is_known ? code_union_module(view->code, function) : "");
}

static void write_stack(struct view *view,
                        const struct diff_view_options *options,
                        uint32_t node,
                        enum cost cost)
{
    const struct tree_view *tree = &options->diff->tree;
    json_begin_object(view->w);
    write_change(view, options->diff, diff_stack_change(options->diff, node, cost));
    json_key_array(view->w, "frames");
    for (uint32_t at = node; at != 0; at = tree->nodes.items[at].parent) {
        json_begin_object(view->w);
        write_function(view, tree->functions.items[at]);
        json_end_object(view->w);
    }
    json_end_array(view->w);
    json_end_object(view->w);
}

struct change_row {
    uint32_t entry;
    uint32_t function; // id in the union, or REC_NONE
    struct diff_change change;
    uint64_t stack_count;
};

DEFINE_VEC(change_row_vec, struct change_row);

static void write_function_name(struct view *view, const void *row)
{
    const uint32_t function = ((const struct change_row *)row)->function;
    json_value_string(view->w, function != REC_NONE ? code_union_name(view->code, function) : "");
}

static void write_function_module(struct view *view, const void *row)
{
    const uint32_t function = ((const struct change_row *)row)->function;
    json_value_string(view->w, function != REC_NONE ? code_union_module(view->code, function) : "");
}

static void write_class(struct view *view, const void *row)
{
    json_value_string(view->w, diff_class_name(((const struct change_row *)row)->change.class));
}

static const struct column change_columns[] = {
    COLUMN_WRITTEN("function", write_function_name),
    COLUMN_WRITTEN("module", write_function_module),
    COLUMN_AS("old", CELL_DOUBLE, change_row, change.old),
    COLUMN_AS("new", CELL_DOUBLE, change_row, change.new),
    COLUMN_AS("change", CELL_DOUBLE, change_row, change.change),
    COLUMN_WRITTEN("class", write_class),
    COLUMN_AS_WHEN(
        "old_error", WHEN_CHANGES_HAVE_ERRORS, CELL_DOUBLE, change_row, change.old_error),
    COLUMN_AS_WHEN(
        "new_error", WHEN_CHANGES_HAVE_ERRORS, CELL_DOUBLE, change_row, change.new_error),
    COLUMN_AS_WHEN(
        "change_error", WHEN_CHANGES_HAVE_ERRORS, CELL_DOUBLE, change_row, change.change_error),
    COLUMN(CELL_U64, change_row, stack_count),
};

static MUST_USE enum err write_stacks(struct view *view,
                                      const struct diff_view_options *options,
                                      uint32_t entry,
                                      enum cost cost)
{
    const size_t limit = options->stack_limit;
    CLEANUP(u32_vec_release) struct u32_vec stacks = {0};
    TRY(diff_ranked_stacks(options->diff, entry, cost, &stacks));
    json_key_array(view->w, "stacks");
    for (size_t i = 0; i < stacks.len && (limit == 0 || i < limit); i++) {
        write_stack(view, options, stacks.items[i], cost);
    }
    json_end_array(view->w);
    return ERR_OK;
}

static MUST_USE enum err
list_changes(const struct diff_view_options *options, enum cost cost, struct change_row_vec *out)
{
    const struct diff *diff = options->diff;
    CLEANUP(u32_vec_release) struct u32_vec ids = {0};
    TRY(diff_ranked(diff, cost, &ids));
    for (size_t i = 0; i < ids.len && (options->limit == 0 || i < options->limit); i++) {
        CLEANUP(u32_vec_release) struct u32_vec stacks = {0};
        TRY(diff_ranked_stacks(diff, ids.items[i], cost, &stacks));
        const struct change_row row = {.entry = ids.items[i],
                                       .function = diff->entries.items[ids.items[i]].function,
                                       .change = diff_entry_change(diff, ids.items[i], cost),
                                       .stack_count = stacks.len};
        TRY(change_row_vec_push(out, row));
    }
    return ERR_OK;
}

static MUST_USE enum err
write_changes(struct view *view, const struct diff_view_options *options, enum cost cost)
{
    CLEANUP(change_row_vec_release) struct change_row_vec rows = {0};
    TRY(list_changes(options, cost, &rows));
    struct table table = TABLE("changes", change_columns, rows.items, rows.len);
    table.has = diff_has_errors(options->diff) ? WHEN_CHANGES_HAVE_ERRORS : 0;
    if (!view_nests(view)) {
        view_csv_tag(view, 0, cost_get_info(cost)->key);
        view_table(view, &table);
        return ERR_OK;
    }
    json_key_array(view->w, cost_get_info(cost)->key);
    for (size_t i = 0; i < rows.len; i++) {
        json_begin_object(view->w);
        view_row(view, &table, i);
        TRY(write_stacks(view, options, rows.items[i].entry, cost));
        json_end_object(view->w);
    }
    json_end_array(view->w);
    return ERR_OK;
}

static void write_totals(struct view *view, const struct diff *diff)
{
    json_key_object(view->w, "totals");
    for (int cost = 0; cost < COST_COUNT; cost++) {
        json_key_object(view->w, cost_get_info((enum cost)cost)->key);
        write_change(view, diff, diff_total_change(diff, (enum cost)cost));
        json_end_object(view->w);
    }
    json_end_object(view->w);
}

static void write_findings(struct view *view, const struct diff_view_options *options)
{
    json_key_array(view->w, "findings");
    for (size_t i = 0; i < options->findings->len; i++) {
        const struct diff_finding *finding = &options->findings->items[i];
        bool is_whole = finding->entry == REC_NONE;
        json_begin_object(view->w);
        json_key_string(view->w, "cost", cost_get_info(finding->cost)->key);
        json_key_bool(view->w, "whole", is_whole);
        write_function(view,
                       is_whole ? REC_NONE : options->diff->entries.items[finding->entry].function);
        write_change(view, options->diff, finding->change);
        json_end_object(view->w);
    }
    json_end_array(view->w);
}

// Write the functions that have another name now.
static void write_renames(struct view *view)
{
    const struct code_rename_vec *renames = &view->code->renames;
    json_key_array(view->w, "renamed");
    for (size_t i = 0; i < renames->len; i++) {
        json_begin_object(view->w);
        write_function(view, renames->items[i].to);
        json_key_string(view->w, "old_function",
                        code_union_name(view->code, renames->items[i].from));
        json_key_string(view->w, "old_module",
                        code_union_module(view->code, renames->items[i].from));
        json_end_object(view->w);
    }
    json_end_array(view->w);
}

enum err view_verdict(struct view *view)
{
    static const struct diff_units plain = {.sides = {1, 1}};
    CLEANUP(diff_release) struct diff diff = {0};
    CLEANUP(diff_finding_vec_release) struct diff_finding_vec findings = {0};
    CLEANUP(strbuf_release) struct strbuf sentence = {0};
    if (view->old_selection == NULL) {
        json_key_null(view->w, "verdict");
        return ERR_OK;
    }
    TRY(diff_build(view->code, view->selection, view->old_selection, plain, &diff));
    TRY(diff_judge(&diff, diff_judged_costs, DIFF_JUDGED_COSTS,
                   (double)DIFF_THRESHOLD_USUAL / DIFF_THRESHOLD_UNIT, &findings));
    diff_verdict_append(&diff,
                        &(struct diff_verdict){.findings = &findings,
                                               .costs = diff_judged_costs,
                                               .cost_count = DIFF_JUDGED_COSTS,
                                               .threshold = DIFF_THRESHOLD_USUAL},
                        &sentence);
    TRY(strbuf_result(&sentence));
    json_key_object(view->w, "verdict");
    json_key_bool(view->w, "grew", diff_has_grown(&findings));
    json_key_string(view->w, "sentence", strbuf_text(&sentence));
    json_end_object(view->w);
    return ERR_OK;
}

enum err view_diff(struct view *view, const struct diff_view_options *options)
{
    write_totals(view, options->diff);
    json_key_double(view->w, "threshold", options->threshold);
    json_key_bool(view->w, "grew", diff_has_grown(options->findings));
    write_findings(view, options);
    view_finding_changes(view, "finding_changes", options->finding_changes);
    write_renames(view);
    json_key_object(view->w, "changes");
    for (size_t i = 0; i < options->cost_count; i++) {
        TRY(write_changes(view, options, options->costs[i]));
    }
    json_end_object(view->w);
    return ERR_OK;
}
