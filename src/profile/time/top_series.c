// SPDX-License-Identifier: MIT
// top_series: see top_series.h.
//
// Drawing the curves of all groups would take too long. Groups are drawn in the order of their
// upper bounds, until no remaining group can enter the top. The curves of the top groups are then
// drawn again.
#include "profile/time/top_series.h"

#include "base/compiler.h"
#include "base/minmax.h"
#include "base/order.h"

static const enum cost cost_of[] = {
    [SERIES_LIVE_BYTES] = COST_PEAK_BYTES,
    [SERIES_ALLOCATIONS] = COST_ALLOCATIONS,
    [SERIES_ALLOCATED_BYTES] = COST_ALLOCATED_BYTES,
    [SERIES_TEMPORARY] = COST_TEMPORARY,
};

uint64_t series_value_of(const struct timeline_point *point, enum series_value value)
{
    switch (value) {
    case SERIES_LIVE_BYTES:
        return point->live_bytes;
    case SERIES_ALLOCATIONS:
        return point->allocations;
    case SERIES_ALLOCATED_BYTES:
        return point->allocated_bytes;
    case SERIES_TEMPORARY:
        return point->temporary;
    }
    return 0;
}

static uint64_t score_of(const struct timeline_point *points, size_t count, enum series_value value)
{
    uint64_t highest = 0;
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t here = series_value_of(&points[i], value);
        highest = max_u64(highest, here);
        sum += here;
    }
    return value == SERIES_LIVE_BYTES ? highest : sum;
}

static int compare_entries(const void *left, const void *right)
{
    const struct top_series_entry *a = left;
    const struct top_series_entry *b = right;
    return order_u64(b->score, a->score) ?: order_u64(a->group, b->group);
}

// An upper bound of a group's score, known without drawing.
static uint64_t bound_of(const struct row_group *group, enum series_value value)
{
    const uint64_t own_peak = costs_get(&group->costs, COST_OWN_PEAK_BYTES);
    if (value == SERIES_LIVE_BYTES) {
        return own_peak > 0 ? own_peak : costs_get(&group->costs, COST_ALLOCATED_BYTES);
    }
    return costs_get(&group->costs, cost_of[value]);
}

// List the groups whose bound is above 0, by their bounds.
static MUST_USE enum err find_candidates(const struct row_groups *groups,
                                         enum series_value value,
                                         struct top_series_vec *out)
{
    for (size_t i = 0; i < groups->groups.len; i++) {
        struct top_series_entry entry = {.group = (uint32_t)i,
                                         .score = bound_of(&groups->groups.items[i], value)};
        if (entry.score > 0) {
            TRY(top_series_vec_push(out, entry));
        }
    }
    top_series_vec_sort(out, compare_entries);
    return ERR_OK;
}

static MUST_USE enum err rank(struct top_series *series,
                              enum series_value value,
                              size_t top_count,
                              struct cancel *cancel,
                              struct timeline_point_vec *scratch)
{
    CLEANUP(top_series_vec_release) struct top_series_vec candidates = {0};
    struct top_series_vec *top = &series->top;
    TRY(find_candidates(&series->groups, value, &candidates));
    for (size_t i = 0; i < candidates.len; i++) {
        struct top_series_entry entry = candidates.items[i];
        if (top->len == top_count && compare_entries(&top->items[top_count - 1], &entry) < 0) {
            break; // no later group can enter: its bound is lower, or as high and its number higher
        }
        TRY(cancel_step(cancel));
        row_groups_timeline(&series->groups, entry.group, scratch->items);
        entry.score = score_of(scratch->items, scratch->len, value);
        if (entry.score > 0) {
            TRY(top_series_vec_push(top, entry));
            top_series_vec_sort(top, compare_entries);
            top->len = min_u64(top->len, top_count);
        }
    }
    return ERR_OK;
}

// Distribute the value in the first slice of each step over the step, as `whole` is distributed.
static void spread_counts(struct u64_vec *values,
                          const struct timeline_point_vec *whole,
                          enum series_value value,
                          size_t step)
{
    for (size_t first = 0; first < values->len; first += step) {
        const size_t end = values->len - first < step ? values->len : first + step;
        const double count = (double)values->items[first];
        double all = 0;
        for (size_t i = first; i < end; i++) {
            all += (double)series_value_of(&whole->items[i], value);
        }
        double so_far = 0;
        uint64_t given = 0;
        for (size_t i = first; i < end && all > 0; i++) {
            so_far += (double)series_value_of(&whole->items[i], value);
            const uint64_t due = (uint64_t)(count * (so_far / all));
            values->items[i] = due - given;
            given = due;
        }
    }
}

static MUST_USE enum err draw(struct top_series *series,
                              enum series_value value,
                              bool is_finer,
                              struct timeline_point_vec *scratch)
{
    size_t count = scratch->len;
    const size_t step = series->groups.profile->lives.cell_step;
    TRY(u64_vec_resize(&series->rest, count));
    for (size_t i = 0; i < count; i++) {
        series->rest.items[i] = series_value_of(&series->timeline.points.items[i], value);
    }
    for (size_t t = 0; t < series->top.len; t++) {
        struct top_series_entry *entry = &series->top.items[t];
        row_groups_timeline(&series->groups, entry->group, scratch->items);
        TRY(u64_vec_resize(&entry->values, count));
        for (size_t i = 0; i < count; i++) {
            entry->values.items[i] = series_value_of(&scratch->items[i], value);
        }
        if (is_finer && value != SERIES_LIVE_BYTES) {
            spread_counts(&entry->values, &series->timeline.points, value, step);
        }
        for (size_t i = 0; i < count; i++) {
            uint64_t *rest = &series->rest.items[i];
            uint64_t *here = &entry->values.items[i];
            *here = *here < *rest ? *here : *rest;
            *rest -= *here;
        }
    }
    return ERR_OK;
}

// Find the errors of values that count blocks of these sizes.
static MUST_USE enum err find_errors(const struct sampling *sampling,
                                     const struct sampled_sizes *sizes,
                                     enum series_value value,
                                     const struct u64_vec *values,
                                     struct u64_vec *out)
{
    TRY(u64_vec_resize(out, values->len));
    for (size_t i = 0; i < values->len; i++) {
        struct costs at = {.sizes = *sizes};
        at.values[cost_of[value]] = values->items[i];
        const struct costs errors = sampling_errors(sampling, &at);
        out->items[i] = costs_get(&errors, cost_of[value]);
    }
    return ERR_OK;
}

static MUST_USE enum err add_errors(struct top_series *series, enum series_value value)
{
    const struct sampling *sampling = &series->errors.sampling;
    if (sampling->bytes == 0) {
        return ERR_OK;
    }
    for (size_t i = 0; i < series->top.len; i++) {
        struct top_series_entry *entry = &series->top.items[i];
        const struct costs *costs = &series->groups.groups.items[entry->group].costs;
        TRY(find_errors(sampling, &costs->sizes, value, &entry->values, &entry->errors));
    }
    return find_errors(sampling, &series->errors.sizes, value, &series->rest, &series->rest_errors);
}

enum err top_series_build(const struct selection *selection,
                          enum series_value value,
                          enum row_group_by by,
                          size_t top_count,
                          struct top_series *out)
{
    CLEANUP(top_series_release) struct top_series series = {0};
    CLEANUP(timeline_point_vec_release) struct timeline_point_vec scratch = {0};
    TRY(timeline_point_vec_resize(&scratch, selection->profile->recording.slice_count));
    if (top_count > 0) {
        TRY(row_groups_build(selection, by, &series.groups));
    }
    series.groups.profile = selection->profile;
    TRY(timeline_build(selection, &series.timeline));
    TRY(rank(&series, value, top_count, selection->cancel, &scratch));
    TRY(draw(&series, value, selection->is_everything, &scratch));
    series.errors = timeline_errors_of(selection);
    TRY(add_errors(&series, value));
    *out = TAKE(series);
    return ERR_OK;
}

void top_series_release(struct top_series *series)
{
    row_groups_release(&series->groups);
    timeline_release(&series->timeline);
    for (size_t i = 0; i < series->top.len; i++) {
        u64_vec_release(&series->top.items[i].values);
        u64_vec_release(&series->top.items[i].errors);
    }
    top_series_vec_release(&series->top);
    u64_vec_release(&series->rest);
    u64_vec_release(&series->rest_errors);
}
