// SPDX-License-Identifier: MIT
// view_summary: how the run went, what it cost, and the call sites with the highest costs.
#include "base/compiler.h"
#include "profile/accuracy/coverage.h"
#include "views_json/views/view_parts.h"
#include "views_json/views/views.h"

static MUST_USE enum err write_health(struct view *view)
{
    const struct recording *recording = &view->profile->recording;
    CLEANUP(module_coverage_vec_release) struct module_coverage_vec coverage = {0};
    struct module_coverage all = {0};
    uint64_t lost_events = 0;
    TRY(coverage_build(view->profile, &coverage));
    for (size_t i = 0; i < coverage.len; i++) {
        all.frames += coverage.items[i].frames;
        all.with_function += coverage.items[i].with_function;
        all.with_line += coverage.items[i].with_line;
    }
    for (size_t i = 0; i < recording->counter_count; i++) {
        bool is_loss = recording->counters[i].kind == REC_COUNTER_LOSS;
        lost_events += is_loss ? recording->counters[i].value : 0;
    }
    json_key_object(view->w, "health");
    json_key_u64(view->w, "lost_events", lost_events);
    json_key_u64(view->w, "frames", all.frames);
    json_key_u64(view->w, "frames_with_function", all.with_function);
    json_key_u64(view->w, "frames_with_line", all.with_line);
    json_end_object(view->w);
    return ERR_OK;
}

// Write how many call sites have each cost.
static void write_top_counts(struct view *view,
                             const struct summary_options *options,
                             const struct call_sites *sites)
{
    json_key_object(view->w, "top_counts");
    for (size_t i = 0; i < options->cost_count; i++) {
        const enum cost cost = options->costs[i];
        uint64_t count = 0;
        for (size_t site = 0; site < sites->sites.len; site++) {
            count += costs_get(&sites->sites.items[site].costs, cost) > 0;
        }
        json_key_u64(view->w, cost_get_info(cost)->key, count);
    }
    json_end_object(view->w);
}

// Write a list of call sites for each cost. A short list has only the cost that ranks it.
static MUST_USE enum err write_top(struct view *view, const struct summary_options *options)
{
    CLEANUP(call_sites_release) struct call_sites built = {0};
    CLEANUP(stack_counts_release) struct stack_counts counts = {0};
    struct call_sites_options sites = options->sites;
    const enum cost sort = view->sort;
    const uint64_t costs = view->costs;
    const struct selection *old_selection = view->old_selection;
    if (sites.sites == NULL) {
        TRY(call_sites_build_alone(view->selection, &built));
        TRY(stack_counts_build(view->selection, &counts));
        sites.sites = &built;
        sites.counts = &counts;
    }
    view->old_selection = NULL;
    json_key_object(view->w, "top");
    for (size_t i = 0; i < options->cost_count; i++) {
        view->sort = options->costs[i];
        view->costs = options->all_costs ? costs : (uint64_t)1 << view->sort;
        TRY(view_site_list(view, cost_get_info(view->sort)->key, &sites));
    }
    json_end_object(view->w);
    write_top_counts(view, options, sites.sites);
    view->sort = sort;
    view->costs = costs;
    view->old_selection = old_selection;
    return ERR_OK;
}

enum err view_summary(struct view *view, const struct summary_options *options)
{
    struct summary summary;
    view_damage(view);
    TRY(view_run(view));
    TRY(summary_build(view->selection, &summary));
    view_totals(view, "totals", &summary);
    if (view->old_selection != NULL) {
        struct summary old;
        TRY(summary_build(view->old_selection, &old));
        view_totals(view, "baseline_totals", &old);
    } else {
        json_key_null(view->w, "baseline_totals");
    }
    TRY(write_health(view));
    view_counters(view);
    view_unrecorded(view);
    view_hooks(view);
    TRY(view_unseen(view));
    json_key_object(view->w, "findings");
    TRY(view_findings(view, &summary));
    json_end_object(view->w);
    view_marks(view);
    return write_top(view, options);
}
