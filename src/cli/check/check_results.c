// SPDX-License-Identifier: MIT
// check_results: holds a recording to a plan. See check_results.h; check_forms.c prints the
// results.
#include "cli/check/check_results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/compiler.h"
#include "cli/diff/diff_report.h"
#include "cli/report/report_lines.h"
#include "cli/text/screen_text.h"
#include "host/os/file.h"
#include "profile/accuracy/sampling.h"
#include "profile/calls/source_place.h"
#include "profile/compare/diff_format.h"
#include "profile/names/known_functions.h"

enum {
    DETAIL_SITES = 3,
    DETAIL_STACKS = 1,
    DETAIL_DEPTH = 16,
    DETAIL_COLUMNS = 80,
    HUNDREDTHS_OF_ALL = 10000,
    COMPARABLE_S = 10, // shorter runs take times that differ by more than a limit allows
};

static void result_release(struct check_result *result)
{
    strbuf_release(&result->name);
    strbuf_release(&result->message);
    strbuf_release(&result->details);
    strbuf_release(&result->file);
}

void check_results_release(struct check_results *results)
{
    for (size_t i = 0; i < results->items.len; i++) {
        result_release(&results->items.items[i]);
    }
    check_result_vec_release(&results->items);
    strbuf_release(&results->title);
}

// Move the result into `results`.
static MUST_USE enum err add_result(struct check_results *results, struct check_result *result)
{
    bool is_whole = strbuf_result(&result->name) == ERR_OK &&
                    strbuf_result(&result->message) == ERR_OK &&
                    strbuf_result(&result->details) == ERR_OK;
    TRY(is_whole ? check_result_vec_push(&results->items, *result) : ERR_NO_MEMORY);
    *result = (struct check_result){0};
    return ERR_OK;
}

enum err check_add_program(struct check_results *results, int wait_status, bool is_allowed)
{
    CLEANUP(result_release) struct check_result result = {.kind = CHECK_PROGRAM};
    strbuf_append_text(&result.name, "program");
    if (WIFSIGNALED(wait_status)) {
        const char *name = sigabbrev_np(WTERMSIG(wait_status));
        strbuf_printf(&result.message, "killed by SIG%s", name != NULL ? name : "?");
    } else {
        strbuf_printf(&result.message, "exit status %d", WEXITSTATUS(wait_status));
    }
    result.is_broken = wait_status != 0 && !is_allowed;
    results->has_run = true;
    results->wait_status = wait_status;
    return add_result(results, &result);
}

size_t check_broken_count(const struct check_results *results)
{
    size_t count = 0;
    for (size_t i = 0; i < results->items.len; i++) {
        count += results->items.items[i].is_broken;
    }
    return count;
}

static struct human format_limit(enum budget_unit unit, uint64_t value)
{
    struct human out;
    switch (unit) {
    case BUDGET_BYTES:
        return format_bytes(value);
    case BUDGET_CALLS:
        return format_count(value);
    case BUDGET_HUNDREDTHS:
        break;
    }
    (void)snprintf(out.text, sizeof(out.text), "%.10g%%", (double)value / 100); // fits
    return out;
}

// Add what is responsible for a broken budget: findings, and the call sites of its cost, if any.
static MUST_USE enum err
explain_budget(const struct report *report, const struct budget_info *budget, struct strbuf *out)
{
    CLEANUP(stream_closep) FILE *stream = strbuf_open_stream(out); // add_result finds its errors
    if (stream == NULL) {
        return ERR_NO_MEMORY;
    }
    report_print_explanations(report, stream, budget->has_stacks ? budget->cost : COST_COUNT);
    return budget->has_stacks ? report_print_section(report, stream, budget->cost) : ERR_OK;
}

static MUST_USE enum err
explain_growth(const struct diff_report *report, enum cost cost, struct strbuf *out)
{
    CLEANUP(stream_closep) FILE *stream = strbuf_open_stream(out); // as above
    return stream != NULL ? diff_print_section(report, stream, cost) : ERR_NO_MEMORY;
}

// Find the file and line of the call site with the most of the cost.
static MUST_USE enum err
find_place(const struct report *report, enum cost cost, struct check_result *result)
{
    CLEANUP(u32_vec_release) struct u32_vec ids = {0};
    uint32_t location = REC_NONE;
    TRY(call_sites_ranked(&report->sites, cost, &ids));
    if (ids.len > 0) {
        TRY(source_place_of_site(report->profile, &report->sites,
                                 report->sites.sites.items + ids.items[0], cost, NULL, &location));
    }
    if (location != REC_NONE) {
        screen_append(&result->file, profile_location_file(report->profile, location));
        result->line = profile_location_get(report->profile, location)->line;
    }
    return strbuf_result(&result->file);
}

static void append_budget_name(const struct check_budget *budget, struct strbuf *out)
{
    strbuf_append_text(out, budget_get_info(budget->measure)->name);
    if (budget->function != NULL) {
        strbuf_append_text(out, " of ");
        screen_append(out, budget->function);
    }
}

// Return a share that exceeds its limit with enough digits to show that.
static struct human format_share_beyond(const struct summary *summary, uint64_t limit)
{
    const int most_digits = 15;
    struct human out;
    const double share = 100 * (double)costs_get(&summary->costs, COST_TEMPORARY) /
                         (double)costs_get(&summary->costs, COST_ALLOCATIONS);
    int digits = 2;
    do {
        (void)snprintf(out.text, sizeof(out.text), "%.*f%%", ++digits, share); // fits
    } while (digits < most_digits && strtod(out.text, NULL) <= (double)limit / 100);
    return out;
}

static struct human format_figure(const struct report *report,
                                  const struct check_budget *budget,
                                  const struct budget_figure *figure,
                                  enum budget_verdict verdict)
{
    const bool hides_excess = verdict == BUDGET_BROKEN && figure->value == budget->limit;
    return hides_excess ? format_share_beyond(&report->summary, budget->limit)
                        : format_limit(budget_get_info(budget->measure)->unit, figure->value);
}

// Append the bounds of a peak that matter, and how high it may have been in the allocator.
static void append_bounds(const struct summary *summary,
                          const struct budget_figure *figure,
                          enum budget_verdict verdict,
                          struct strbuf *out)
{
    const uint64_t flight_bytes = summary_peak_flight_bytes(summary);
    if (verdict == BUDGET_UNCERTAIN ||
        summary_has_wide_peak(summary, figure->at_least, figure->at_most)) {
        strbuf_printf(out, ", at least %s", format_bytes(figure->at_least).text);
        strbuf_printf(out, ", at most %s", format_bytes(figure->at_most).text);
    }
    if (summary_peak_has_share(summary, flight_bytes)) {
        strbuf_printf(out, "; up to %s in the allocator",
                      format_bytes(summary_peak_at_most(summary)).text);
    }
}

// Append the figure with what is known of its error, and the limit. The words of a broken limit are
// those of the headers, the crate and the plugin of pytest.
static void append_figure(const struct report *report,
                          const struct check_budget *budget,
                          const struct budget_figure *figure,
                          enum budget_verdict verdict,
                          struct strbuf *out)
{
    strbuf_append_text(out, format_figure(report, budget, figure, verdict).text);
    strbuf_append_text(out, sampling_format_error(figure->value, figure->error).text);
    const struct human limit = format_limit(budget_get_info(budget->measure)->unit, budget->limit);
    if (verdict != BUDGET_BROKEN) {
        strbuf_printf(out, " of %s", limit.text);
    }
    if (budget->measure == BUDGET_PEAK && figure->error == 0) {
        append_bounds(&report->summary, figure, verdict, out);
    }
    if (budget->measure == BUDGET_RSS && summary_has_wide_rss(&report->summary)) {
        strbuf_printf(out, ", at most %s", format_bytes(figure->at_most).text);
    }
    if (budget->measure == BUDGET_LEAKED && !profile_has_ended(report->profile)) {
        strbuf_append_text(out, ", live: the program runs on and may still free it");
    }
    if (verdict == BUDGET_BROKEN) {
        strbuf_printf(out, "; at most %s allowed", limit.text);
    }
    if (figure->is_estimate) {
        sampling_append_mark(&report->profile->recording, out);
    }
}

static MUST_USE enum err check_budget(struct check_results *results,
                                      const struct check_budget *budget,
                                      const struct report *report)
{
    const struct budget_info *info = budget_get_info(budget->measure);
    const struct budget_figure figure =
        budget_figure_of(&report->selection, &report->summary, budget->measure);
    const enum budget_verdict verdict =
        budget_judge(&report->selection, &report->summary, budget->measure, budget->limit);
    CLEANUP(result_release)
    struct check_result result = {
        .kind = CHECK_BUDGET,
        .is_broken = verdict == BUDGET_BROKEN,
        .is_uncertain = verdict == BUDGET_UNCERTAIN,
        .function = budget->function,
        .measure = info->name,
        .value = (double)figure.value,
        .limit = (double)budget->limit,
        .at_least = (double)figure.at_least,
        .at_most = (double)figure.at_most,
    };
    append_budget_name(budget, &result.name);
    append_figure(report, budget, &figure, verdict, &result.message);
    if (result.is_uncertain) {
        strbuf_append_text(&result.message, "; cannot tell: the limit is within the error");
    }
    if (budget->function != NULL && report->selection.rows.len == 0) {
        strbuf_append_text(&result.message, "; no stack has such a function");
    }
    if (result.is_broken) {
        TRY(explain_budget(report, info, &result.details));
        TRY(info->has_stacks ? find_place(report, info->cost, &result) : ERR_OK);
    }
    return add_result(results, &result);
}

static enum err
refuse_unknown(const struct report *report, enum budget_measure measure, struct err_info *info)
{
    const struct budget_info *budget = budget_get_info(measure);
    bool is_rss = measure == BUDGET_RSS;
    bool is_filtered = !is_rss && profile_knows(report->profile, budget->cost);
    return err_set(info, ERR_UNSUPPORTED, "%s cannot be checked: %s has no data on %s",
                   budget->name, is_filtered ? "the filtered part" : "the recording",
                   is_rss ? "the resident size"
                          : profile_cost_info(report->profile, budget->cost).phrase);
}

// Refuse a function that the recording does not know: its budgets would be kept in each run. A
// function that exists and allocates nothing keeps its budgets.
static MUST_USE enum err refuse_missing(const struct profile *profile,
                                        const struct name_sources *sources,
                                        const char *function,
                                        struct err_info *info)
{
    CLEANUP(pattern_release) struct pattern pattern = {0};
    CLEANUP(known_functions_release) struct known_functions known = {0};
    TRY(pattern_init(&pattern, PATTERN_REGEX, function, "--function", info));
    TRY(known_functions_find(profile, sources, &pattern, &known, info));
    if (known.is_known) {
        return ERR_OK;
    }
    CLEANUP(strbuf_release) struct strbuf why = {0};
    if (known.blind_count > 0) {
        strbuf_printf(&why, " (some names of %s%s were not found)", strbuf_text(&known.blind),
                      known.blind_count > KNOWN_FUNCTIONS_BLIND_NAMED ? " and others" : "");
    }
    return err_set(info, ERR_INVALID,
                   "no function of the program matches '%.100s'%s; --allow-missing accepts that",
                   function, strbuf_text(&why));
}

// Refuse a filter that matches nothing, which would make any check pass. `old` may be NULL.
static MUST_USE enum err refuse_nothing(const struct check_plan *plan,
                                        const struct selection *new,
                                        const struct selection *old,
                                        const struct filter *filter,
                                        struct err_info *info)
{
    uint32_t unmatched = new->unmatched &(old != NULL ? old->unmatched : UINT32_MAX);
    if (unmatched == 0 || plan->allows_missing) {
        return ERR_OK;
    }
    CLEANUP(strbuf_release) struct strbuf text = {0};
    filter_explain_nothing(new, old, filter, &text);
    return err_set(info, ERR_INVALID, "%.*s; --allow-missing accepts that",
                   (int)strcspn(strbuf_text(&text), "\n"), strbuf_text(&text));
}

// Check all budgets of one scope with one report.
static MUST_USE enum err check_scope(struct check_results *results,
                                     const struct check_plan *plan,
                                     size_t first,
                                     const struct profile *profile,
                                     const struct name_sources *sources,
                                     const struct filter *filter,
                                     struct err_info *info)
{
    const char *function = plan->budgets.items[first].function;
    struct report_options options = {.filter = *filter,
                                     .sort = COST_COUNT,
                                     .site_limit = DETAIL_SITES,
                                     .stack_limit = DETAIL_STACKS,
                                     .depth_limit = DETAIL_DEPTH,
                                     .width_columns = DETAIL_COLUMNS};
    options.filter.function = function != NULL ? function : filter->function;
    CLEANUP(report_release) struct report report = {0};
    TRY(report_build(profile, &options, &report, info));
    if (function == NULL) {
        TRY(refuse_nothing(plan, &report.selection, NULL, filter, info));
    } else if ((report.selection.unmatched >> FILTER_FUNCTION & 1) != 0 && !plan->allows_missing) {
        TRY(refuse_missing(profile, sources, function, info));
    }
    for (size_t i = first; i < plan->budgets.len; i++) {
        const struct check_budget *budget = &plan->budgets.items[i];
        if (budget->function != function) {
            continue;
        }
        if (!budget_is_known(&report.selection, &report.summary, budget->measure)) {
            return refuse_unknown(&report, budget->measure, info);
        }
        TRY(check_budget(results, budget, &report));
    }
    return ERR_OK;
}

static bool is_first_of_scope(const struct check_plan *plan, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (plan->budgets.items[i].function == plan->budgets.items[index].function) {
            return false;
        }
    }
    return true;
}

// Return the growth as a ratio. Growth from 0 has no bound; JSON prints null for it.
static double growth_ratio(struct diff_change change)
{
    if (change.old > 0) {
        return change.change / change.old; // NAN if unknown
    }
    return change.class == DIFF_SAME ? 0 : NAN;
}

// Whether the growth is divided by run times that mostly measure how busy the machine was.
static bool is_by_short_time(const struct diff_report *report, enum cost cost)
{
    const struct diff *diff = &report->comparison->diff;
    const double shortest = fmin(diff->units[SIDE_NEW], diff->units[SIDE_OLD]);
    return report->options->per.is_second && diff_is_amount(cost) && shortest < COMPARABLE_S;
}

// Append why a growth that would break its limit counts as kept.
static void append_too_short(const struct diff *diff, struct strbuf *out)
{
    strbuf_printf(out,
                  "; cannot tell: runs of %.4g and %.4g s are too short to compare by the second",
                  diff->units[SIDE_OLD], diff->units[SIDE_NEW]);
}

static MUST_USE enum err check_cost_growth(struct check_results *results,
                                           const struct check_plan *plan,
                                           const struct diff_report *report,
                                           enum cost cost)
{
    const struct diff *diff = &report->comparison->diff;
    struct diff_change change = diff_total_change(diff, cost);
    double threshold = (double)plan->growth / HUNDREDTHS_OF_ALL;
    const bool is_beyond = diff_is_beyond(diff, cost, &change, threshold);
    const bool is_uncertain = is_beyond && is_by_short_time(report, cost);
    CLEANUP(result_release)
    struct check_result result = {
        .kind = CHECK_GROWTH,
        .is_broken = is_beyond && !is_uncertain,
        .is_uncertain = is_uncertain,
        .is_unknown = change.class == DIFF_UNKNOWN,
        .measure = cost_get_info(cost)->option,
        .value = growth_ratio(change),
        .limit = threshold,
    };
    strbuf_printf(&result.name, "growth of %s", cost_get_info(cost)->option);
    if (result.is_unknown) {
        strbuf_append_text(&result.message, "not in both recordings");
    } else {
        strbuf_printf(&result.message, "%s, %s -> %s%s; at most %s allowed",
                      diff_format_ratio(change).text, diff_format(cost, change.old).text,
                      diff_format(cost, change.new).text,
                      diff_format_error(cost, change.change_error).text,
                      format_limit(BUDGET_HUNDREDTHS, plan->growth).text);
        for (size_t side = 0; side < SIDE_COUNT; side++) {
            sampling_append_mark(&report->comparison->profiles[side]->recording, &result.message);
        }
        if (is_uncertain) {
            append_too_short(diff, &result.message);
        }
    }
    if (result.is_broken) {
        TRY(explain_growth(report, cost, &result.details));
    }
    return add_result(results, &result);
}

static MUST_USE enum err check_growth(struct check_results *results,
                                      const struct check_plan *plan,
                                      struct profile *profile,
                                      const struct name_sources *sources,
                                      const struct filter_words *words,
                                      struct err_info *info)
{
    static const enum cost costs[] = {COST_PEAK_BYTES, COST_ALLOCATIONS, COST_ALLOCATED_BYTES,
                                      COST_LEAKED_BYTES};
    struct per per = {0};
    if (plan->per != NULL && !per_parse(plan->per, &per)) {
        return err_set(info, ERR_INVALID,
                       "per: '%.100s' is not second or a count such as 1000 or 900:1000",
                       plan->per);
    }
    CLEANUP(comparison_release) struct comparison comparison = {0};
    TRY(comparison_init(&comparison, profile, plan->baseline, sources, words, &per, info));
    TRY(refuse_nothing(plan, &comparison.selections[SIDE_NEW], &comparison.selections[SIDE_OLD],
                       &comparison.filters[SIDE_NEW].filter, info));
    const struct diff_options options = {.sort = COST_COUNT,
                                         .site_limit = DETAIL_SITES,
                                         .stack_limit = DETAIL_STACKS,
                                         .depth_limit = DETAIL_DEPTH,
                                         .threshold = plan->growth,
                                         .per = per,
                                         .width_columns = DETAIL_COLUMNS};
    CLEANUP(diff_report_release) struct diff_report report = {0};
    TRY(diff_report_build(&comparison, &options, &report, info));
    bool is_comparable = false;
    for (size_t i = 0; i < ARRAY_LEN(costs); i++) {
        is_comparable = is_comparable || diff_knows(&comparison.diff, costs[i]);
    }
    if (!is_comparable) {
        return err_set(info, ERR_UNSUPPORTED,
                       "growth cannot be checked: the recordings have no cost in common");
    }
    for (size_t i = 0; i < ARRAY_LEN(costs); i++) {
        TRY(check_cost_growth(results, plan, &report, costs[i]));
    }
    return ERR_OK;
}

enum err check_evaluate(struct check_results *results,
                        const struct check_plan *plan,
                        struct profile *profile,
                        const struct name_sources *sources,
                        const struct filter_words *words,
                        struct err_info *info)
{
    const struct rec_meta *meta = &profile->recording.meta;
    rec_string what = meta->command_line != 0 ? meta->command_line : meta->program;
    CLEANUP(applied_filter_release) struct applied_filter applied = {0};
    screen_append(&results->title, what != 0 ? profile_string(profile, what) : "(unknown program)");
    results->runtime_ms = meta->runtime_ms;
    TRY(filter_words_apply(words, &profile->recording, &applied, info));
    for (size_t i = 0; i < plan->budgets.len; i++) {
        if (is_first_of_scope(plan, i)) {
            TRY(check_scope(results, plan, i, profile, sources, &applied.filter, info));
        }
    }
    return plan->baseline != NULL ? check_growth(results, plan, profile, sources, words, info)
                                  : ERR_OK;
}
