// SPDX-License-Identifier: MIT
// view_selection: the filter, which figures are estimates or unknown, the suppressed leaks, and the
// totals.
#include "base/compiler.h"
#include "views_json/views/view_parts.h"
#include "views_json/views/views.h"

static void write_time(struct view *view)
{
    const struct filter *filter = view->filter;
    uint64_t slice_ms = view->selection->profile->recording.slice_ms;
    struct json_writer *w = view->w;
    if (!filter->has_range) {
        json_key_null(w, "time");
        return;
    }
    json_key_object(w, "time");
    json_key_u64(w, "from_ms", filter->range.first * slice_ms);
    json_key_u64(w, "to_ms", filter->range.end * slice_ms);
    json_key_array(w, "classes");
    for (size_t i = 0; block_class_names[i] != NULL; i++) {
        if ((filter->range.classes >> i & 1) != 0) {
            json_value_string(w, block_class_names[i]);
        }
    }
    json_end_array(w);
    json_end_object(w);
}

static void
write_range(struct json_writer *w, const char *key, bool is_set, struct bucket_range range)
{
    if (!is_set) {
        json_key_null(w, key);
        return;
    }
    json_key_object(w, key);
    json_key_u64(w, "min", bucket_range_low(range));
    json_key_u64(w, "max", bucket_range_high(range));
    json_end_object(w);
}

static void write_unmatched(struct view *view)
{
    static const char *const names[FILTER_NAME_COUNT] = {
        [FILTER_FUNCTION] = "function", [FILTER_FILE] = "file",
        [FILTER_MODULE] = "module",     [FILTER_THREAD] = "thread",
        [FILTER_PROCESS] = "process",   [FILTER_FOCUS] = "focus",
        [FILTER_IGNORE] = "ignore",     [FILTER_SHOW_FROM] = "show_from",
        [FILTER_SITE] = "call_site",
    };
    json_key_array(view->w, "unmatched");
    for (int name = 0; name < FILTER_NAME_COUNT; name++) {
        if ((view->selection->unmatched >> name & 1) != 0) {
            json_value_string(view->w, names[name]);
        }
    }
    json_end_array(view->w);
}

static void write_filter(struct view *view)
{
    const struct filter *filter = view->filter;
    const struct {
        const char *key;
        const char *text;
    } texts[] = {
        {"function", filter->function_text},
        {"function_regex", filter->function},
        {"file", filter->file_text},
        {"file_regex", filter->file},
        {"module", filter->module_text},
        {"module_regex", filter->module},
        {"focus", filter->focus},
        {"ignore", filter->ignore},
        {"show_from", filter->show_from},
        {"call_site", filter->site_text},
        {"thread", filter->thread},
    };
    struct json_writer *w = view->w;
    json_key_object(w, "filter");
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        json_key_string(w, texts[i].key, texts[i].text);
    }
    json_key_known_u64(w, "process", filter->pid, filter->pid != 0);
    write_time(view);
    write_range(w, "size_bytes", filter->has_sizes, filter->sizes);
    write_range(w, "lifetime_ms", filter->has_lifetimes, filter->lifetimes);
    write_unmatched(view);
    json_end_object(w);
}

static void write_suppressed(struct view *view)
{
    const struct suppression_match *suppressed = &view->selection->suppressed;
    json_key_object(view->w, "suppressed");
    json_key_u64(view->w, "stack_count", suppressed->stack_count);
    json_key_u64(view->w, "live_bytes", suppressed->live_bytes);
    json_key_u64(view->w, "live_blocks", suppressed->live_blocks);
    json_end_object(view->w);
}

// Write the totals of one side's selection, and their errors.
static MUST_USE enum err write_totals(struct view *view,
                                      enum side side,
                                      const char *key,
                                      const char *errors_key,
                                      const struct selection *selection)
{
    struct summary summary;
    TRY(summary_build(selection, &summary));
    view_costs(view, key, ALL_COSTS, summary.unknown, &summary.costs);
    view_errors(view, side, errors_key, ALL_COSTS, &summary.costs);
    return ERR_OK;
}

static MUST_USE enum err write_whole(struct view *view)
{
    const struct filter filter = {.suppressions = view->filter->suppressions,
                                  .cancel = view->filter->cancel};
    CLEANUP(selection_release) struct selection everything = {0};
    TRY(profile_select(view->profile, &filter, &everything, NULL));
    struct summary summary;
    TRY(summary_build(&everything, &summary));
    view_costs(view, "recording_totals", ALL_COSTS, summary.unknown, &summary.costs);
    return ERR_OK;
}

enum err view_selection(struct view *view, const struct costs *whole)
{
    json_key_object(view->w, "selection");
    write_filter(view);
    TRY(write_totals(view, SIDE_NEW, "totals", "totals_errors", view->selection));
    if (whole != NULL) {
        view_costs(view, "recording_totals", ALL_COSTS, profile_unknown_costs(view->profile),
                   whole);
    } else {
        TRY(write_whole(view));
    }
    const uint32_t unknown = view->selection->unknown;
    view_costs(view, "estimated", ALL_COSTS, unknown, &view->selection->estimated);
    view_cost_keys(view, "unavailable", unknown);
    write_suppressed(view);
    if (view->old_selection != NULL) {
        TRY(write_totals(view, SIDE_OLD, "baseline_totals", "baseline_totals_errors",
                         view->old_selection));
    } else {
        json_key_null(view->w, "baseline_totals");
    }
    json_end_object(view->w);
    return ERR_OK;
}

struct rule_row {
    const char *pattern;
    const char *source;
    struct suppression_match match;
};

static const struct column rule_columns[] = {
    COLUMN(CELL_TEXT, rule_row, pattern),
    COLUMN(CELL_TEXT, rule_row, source),
    COLUMN_AS("stack_count", CELL_U64, rule_row, match.stack_count),
    COLUMN_AS("live_bytes", CELL_U64, rule_row, match.live_bytes),
    COLUMN_AS("live_blocks", CELL_U64, rule_row, match.live_blocks),
};

DEFINE_VEC(rule_row_vec, struct rule_row);

void view_suppressions(struct view *view)
{
    const struct suppressions *rules = view->filter->suppressions;
    const struct suppression_match_vec *matches = &view->selection->matches;
    CLEANUP(rule_row_vec_release) struct rule_row_vec rows = {0};
    for (size_t i = 0; i < matches->len; i++) {
        const struct rule_row row = {.pattern = suppression_pattern(rules, i),
                                     .source =
                                         suppression_source_name(rules->rules.items[i].source),
                                     .match = matches->items[i]};
        rule_row_vec_add(&rows, row);
    }
    view_table(view, &TABLE("suppressions", rule_columns, rows.items, rows.len));
}
