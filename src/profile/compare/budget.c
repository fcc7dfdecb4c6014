// SPDX-License-Identifier: MIT
#include "profile/compare/budget.h"

#include <math.h>
#include <string.h>

#include "base/minmax.h"
#include "profile/accuracy/sampling.h"

static const uint64_t hundredths_of_all = 10000;

static const struct budget_info infos[BUDGET_MEASURE_COUNT] = {
    [BUDGET_PEAK] = {"max-peak", BUDGET_BYTES, COST_PEAK_BYTES, true},
    [BUDGET_ALLOCATIONS] = {"max-allocations", BUDGET_CALLS, COST_ALLOCATIONS, true},
    [BUDGET_ALLOCATED] = {"max-allocated", BUDGET_BYTES, COST_ALLOCATED_BYTES, true},
    [BUDGET_LEAKED] = {"max-leaked", BUDGET_BYTES, COST_LEAKED_BYTES, true},
    [BUDGET_TEMPORARY_SHARE] = {"max-temporary-share", BUDGET_HUNDREDTHS, COST_TEMPORARY, true},
    [BUDGET_RSS] = {"max-rss", BUDGET_BYTES, COST_PEAK_BYTES, false},
};

const struct budget_info *budget_get_info(enum budget_measure measure)
{
    return &infos[measure];
}

enum budget_measure budget_find(const char *name)
{
    for (int measure = 0; measure < BUDGET_MEASURE_COUNT; measure++) {
        if (strcmp(infos[measure].name, name) == 0) {
            return (enum budget_measure)measure;
        }
    }
    return BUDGET_MEASURE_COUNT;
}

bool budget_is_known(const struct selection *selection,
                     const struct summary *summary,
                     enum budget_measure measure)
{
    if (measure == BUDGET_RSS) {
        return summary->peak_rss_bytes > 0;
    }
    const bool is_share = measure == BUDGET_TEMPORARY_SHARE;
    return selection_knows(selection, infos[measure].cost) &&
           (!is_share || selection_knows(selection, COST_ALLOCATIONS));
}

static uint64_t value_of(const struct summary *summary, enum budget_measure measure)
{
    const uint64_t cost = costs_get(&summary->costs, infos[measure].cost);
    const uint64_t all = costs_get(&summary->costs, COST_ALLOCATIONS);
    if (measure == BUDGET_TEMPORARY_SHARE) {
        return share_u64(cost, hundredths_of_all, all);
    }
    return measure == BUDGET_RSS ? summary->peak_rss_bytes : cost;
}

// The bounds of an estimate with this error. A figure above 0 has at least one block.
static struct budget_figure
estimate_of(const struct sampling *sampling, uint64_t value, uint64_t error)
{
    return (struct budget_figure){
        .value = value,
        .at_least = value > error ? value - error : value > 0,
        .at_most = value > 0 ? capped_sum_u64(value, error) : sampling_most_unseen(sampling),
        .error = error,
        .is_estimate = true,
    };
}

static struct budget_figure exactly(uint64_t value)
{
    return (struct budget_figure){.value = value, .at_least = value, .at_most = value};
}

static struct budget_figure share_of(const struct sampling *sampling, const struct summary *summary)
{
    const uint64_t value = value_of(summary, BUDGET_TEMPORARY_SHARE);
    const double error =
        sampling_error_of_share(sampling, &summary->costs, COST_TEMPORARY, COST_ALLOCATIONS);
    const uint64_t hundredths = (uint64_t)ceil(fmin(error, 1) * (double)hundredths_of_all);
    return (struct budget_figure){
        .value = value,
        .at_least = value - min_u64(value, hundredths),
        .at_most = min_u64(value + hundredths, hundredths_of_all),
        .error = hundredths,
        .is_estimate = true,
    };
}

struct budget_figure budget_figure_of(const struct selection *selection,
                                      const struct summary *summary,
                                      enum budget_measure measure)
{
    const struct sampling sampling = sampling_of(&selection->profile->recording);
    const uint64_t value = value_of(summary, measure);
    const bool has_exact_totals = sampling.is_sampled && selection->is_everything;
    if (measure == BUDGET_PEAK && (selection->is_everything || sampling.bytes == 0)) {
        return (struct budget_figure){.value = value,
                                      .at_least = summary_peak_at_least(summary),
                                      .at_most = summary_peak_order_at_most(summary),
                                      .is_estimate = sampling.is_sampled};
    }
    if (measure == BUDGET_ALLOCATIONS && has_exact_totals) {
        return exactly(sampling.allocations);
    }
    if (measure == BUDGET_ALLOCATED && has_exact_totals) {
        return exactly(sampling.allocated_bytes);
    }
    if (measure == BUDGET_RSS) {
        return (struct budget_figure){.value = value,
                                      .at_least = value,
                                      .at_most = max_u64(value, summary->peak_rss_at_most)};
    }
    if (sampling.bytes == 0) {
        struct budget_figure figure = exactly(value);
        figure.is_estimate = sampling.is_sampled; // of an unknown error
        return figure;
    }
    if (measure == BUDGET_TEMPORARY_SHARE) {
        return share_of(&sampling, summary);
    }
    const struct costs errors = sampling_errors(&sampling, &summary->costs);
    return estimate_of(&sampling, value, costs_get(&errors, infos[measure].cost));
}

// Whether a share without its fraction of a hundredth hides that it exceeds the limit.
static bool exceeds_by_a_fraction(const struct summary *summary, uint64_t limit)
{
    unsigned __int128 temporary = costs_get(&summary->costs, COST_TEMPORARY);
    unsigned __int128 all = costs_get(&summary->costs, COST_ALLOCATIONS);
    return temporary * hundredths_of_all > all * limit;
}

enum budget_verdict budget_judge(const struct selection *selection,
                                 const struct summary *summary,
                                 enum budget_measure measure,
                                 uint64_t limit)
{
    const struct budget_figure figure = budget_figure_of(selection, summary, measure);
    if (measure == BUDGET_TEMPORARY_SHARE && figure.error == 0) {
        return exceeds_by_a_fraction(summary, limit) ? BUDGET_BROKEN : BUDGET_KEPT;
    }
    return figure.at_least > limit  ? BUDGET_BROKEN
           : figure.at_most > limit ? BUDGET_UNCERTAIN
                                    : BUDGET_KEPT;
}
