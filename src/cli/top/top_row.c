// SPDX-License-Identifier: MIT
#include "cli/top/top_row.h"

#include <string.h>

static const struct top_column_info columns[TOP_COLUMN_COUNT] = {
    [TOP_LIVE] = {"LIVE", "live", "live bytes", 9},
    [TOP_CHANGE] = {"CHANGE", "change", "change of live bytes", 10},
    [TOP_RATE] = {"ALLOC/S", "rate", "allocations per second", 7},
    [TOP_TEMPORARY] = {"TEMP", "temporary", "temporary allocations", 6},
    [TOP_ALLOCATIONS] = {"ALLOCS", "allocations", "allocations", 6},
    [TOP_PEAK] = {"AT PEAK", "peak", "bytes at the peak", 9},
};

const struct top_column_info *top_column_get(enum top_column column)
{
    return &columns[column];
}

enum top_column top_column_find(const char *word)
{
    int column = 0;
    while (column < TOP_COLUMN_COUNT && strcmp(columns[column].word, word) != 0) {
        column++;
    }
    return (enum top_column)column;
}

double top_rate(const struct top_moments *moments, uint64_t now, uint64_t before)
{
    const uint64_t from_ms = moments->previous_ms;
    const uint64_t to_ms = moments->sample->moment->time_ms;
    return to_ms > from_ms && now > before
               ? (double)(now - before) * 1000 / (double)(to_ms - from_ms)
               : 0;
}

double top_rate_error(const struct top_moments *moments,
                      const struct site_figures *now,
                      const struct site_figures *before)
{
    return top_rate(moments, site_allocations_error(&moments->sample->sampling, before, now), 0);
}

static void find_errors(const struct top_moments *moments,
                        const struct site_figures *base,
                        const struct site_figures *before,
                        struct top_row *row)
{
    const struct sampling *sampling = &moments->sample->sampling;
    const struct site_figures of = site_figures_error(sampling, &row->now);
    const struct costs of_site =
        sampling_errors(sampling, &moments->sample->sites.sites.items[row->site].costs);
    row->errors[TOP_LIVE] = (double)of.live_bytes;
    row->errors[TOP_CHANGE] = (double)site_change_error(sampling, base, &row->now);
    row->errors[TOP_RATE] = top_rate_error(moments, &row->now, before);
    row->errors[TOP_TEMPORARY] = (double)of.temporary;
    row->errors[TOP_ALLOCATIONS] = (double)of.allocations;
    row->errors[TOP_PEAK] = (double)costs_get(&of_site, COST_PEAK_BYTES);
}

struct top_row top_row_of(const struct top_moments *moments, size_t site)
{
    const struct site_moment *moment = moments->sample->moment;
    const struct site_figures now = site_moment_get(moment, site);
    const struct site_figures base = site_moment_earlier(moments->base, moment, site);
    const struct site_figures before = moments->previous != NULL
                                           ? site_moment_earlier(moments->previous, moment, site)
                                           : (struct site_figures){0};
    struct top_row row = {
        .site = site,
        .now = now,
        .peak_bytes = costs_get(&moments->sample->sites.sites.items[site].costs, COST_PEAK_BYTES),
        .change_bytes = (int64_t)(now.live_bytes - base.live_bytes),
        .rate = top_rate(moments, now.allocations, before.allocations)};
    find_errors(moments, &base, &before, &row);
    return row;
}

double top_row_value(const struct top_row *row, enum top_column column)
{
    switch (column) {
    case TOP_LIVE:
        return (double)row->now.live_bytes;
    case TOP_CHANGE:
        return (double)row->change_bytes;
    case TOP_RATE:
        return row->rate;
    case TOP_TEMPORARY:
        return (double)row->now.temporary;
    case TOP_ALLOCATIONS:
        return (double)row->now.allocations;
    case TOP_PEAK:
        return (double)row->peak_bytes;
    case TOP_COLUMN_COUNT:
        break;
    }
    return 0;
}
