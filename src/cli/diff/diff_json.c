// SPDX-License-Identifier: MIT
// diff_json: a comparison for programs. docs/format/diff-json.md describes every field.
#include "base/compiler.h"
#include "cli/diff/diff_report.h"
#include "profile/tables/profile_json.h"

enum {
    DIFF_JSON_VERSION = 1,
    HUNDREDTHS_OF_ALL = 10000,
};

static void write_change(struct json_writer *w, struct diff_change change)
{
    json_key_double(w, "old", change.old);
    json_key_double(w, "new", change.new);
    json_key_double(w, "change", change.change);
    json_key_string(w, "class", diff_class_name(change.class));
}

static void
write_function(struct json_writer *w, const struct diff_report *report, uint32_t function)
{
    const struct code_union *code = &report->comparison->code;
    bool is_known = function != REC_NONE;
    json_key_string(w, "function", is_known ? code_union_name(code, function) : "");
    json_key_string(w, "module", is_known ? code_union_module(code, function) : "");
}

static void
write_stack(struct json_writer *w, const struct diff_report *report, uint32_t node, enum cost cost)
{
    const struct shown_tree *tree = &report->comparison->diff.tree;
    json_begin_object(w);
    write_change(w, diff_stack_change(&report->comparison->diff, node, cost));
    json_key(w, "frames");
    json_begin_array(w);
    for (uint32_t at = node; at != 0; at = tree->nodes.items[at].parent) {
        json_begin_object(w);
        write_function(w, report, tree->functions.items[at]);
        json_end_object(w);
    }
    json_end_array(w);
    json_end_object(w);
}

static MUST_USE enum err
write_entry(struct json_writer *w, const struct diff_report *report, uint32_t entry, enum cost cost)
{
    const struct diff *diff = &report->comparison->diff;
    CLEANUP(u32_vec_release) struct u32_vec stacks = {0};
    TRY(diff_ranked_stacks(diff, entry, cost, &stacks));
    json_begin_object(w);
    write_function(w, report, diff->entries.items[entry].function);
    write_change(w, diff_entry_change(diff, entry, cost));
    json_key_u64(w, "stack_count", stacks.len);
    json_key(w, "stacks");
    json_begin_array(w);
    uint32_t limit = report->options->stack_limit;
    for (size_t i = 0; i < stacks.len && (limit == 0 || i < limit); i++) {
        write_stack(w, report, stacks.items[i], cost);
    }
    json_end_array(w);
    json_end_object(w);
    return ERR_OK;
}

static MUST_USE enum err
write_section(struct json_writer *w, const struct diff_report *report, enum cost cost)
{
    CLEANUP(u32_vec_release) struct u32_vec ids = {0};
    TRY(diff_ranked(&report->comparison->diff, cost, &ids));
    json_key(w, cost_get_info(cost)->option);
    json_begin_array(w);
    uint32_t limit = report->options->site_limit;
    for (size_t i = 0; i < ids.len && (limit == 0 || i < limit); i++) {
        TRY(write_entry(w, report, ids.items[i], cost));
    }
    json_end_array(w);
    return ERR_OK;
}

static void write_totals(struct json_writer *w, const struct diff_report *report)
{
    json_key(w, "totals");
    json_begin_object(w);
    for (int cost = 0; cost < COST_COUNT; cost++) {
        json_key(w, cost_get_info((enum cost)cost)->key);
        json_begin_object(w);
        write_change(w, diff_total_change(&report->comparison->diff, (enum cost)cost));
        json_end_object(w);
    }
    json_end_object(w);
}

static void write_findings(struct json_writer *w, const struct diff_report *report)
{
    const struct diff *diff = &report->comparison->diff;
    json_key(w, "findings");
    json_begin_array(w);
    for (size_t i = 0; i < report->findings.len; i++) {
        const struct diff_finding *finding = &report->findings.items[i];
        bool is_whole = finding->entry == REC_NONE;
        json_begin_object(w);
        json_key_string(w, "cost", cost_get_info(finding->cost)->key);
        json_key_bool(w, "whole", is_whole);
        write_function(w, report,
                       is_whole ? REC_NONE : diff->entries.items[finding->entry].function);
        write_change(w, finding->change);
        json_end_object(w);
    }
    json_end_array(w);
}

static void write_side(struct json_writer *w, const struct diff_report *report, enum side side)
{
    const struct comparison *comparison = report->comparison;
    const struct profile *profile = comparison->profiles[side];
    json_key(w, side == SIDE_NEW ? "new" : "old");
    json_begin_object(w);
    json_key_string(w, "damage", profile->damage[0] != '\0' ? profile->damage : NULL);
    profile_json_run(w, profile);
    filter_write_json(w, &comparison->selections[side], &comparison->filters[side].filter);
    profile_json_totals(w, "totals", &comparison->diff.summaries[side]);
    json_key_double(w, "units", comparison->diff.units[side]);
    json_end_object(w);
}

enum err diff_report_write_json(const struct diff_report *report, enum json_style style, FILE *out)
{
    struct json_writer w;
    json_to_stream(&w, out, style);
    json_begin_object(&w);
    json_key_u64(&w, "version", DIFF_JSON_VERSION);
    write_side(&w, report, SIDE_OLD);
    write_side(&w, report, SIDE_NEW);
    write_totals(&w, report);
    json_key_double(&w, "threshold", (double)report->options->threshold / HUNDREDTHS_OF_ALL);
    json_key_bool(&w, "grew", report->findings.len > 0);
    write_findings(&w, report);
    json_key(&w, "changes");
    json_begin_object(&w);
    for (size_t i = 0; i < report->cost_count; i++) {
        TRY(write_section(&w, report, report->costs[i]));
    }
    json_end_object(&w);
    json_end_object(&w);
    return json_finish(&w);
}
