// SPDX-License-Identifier: MIT
// growth: see growth.h.
#include "profile/growth.h"

#include <stdlib.h>

#include "base/compiler.h"

enum {
    SLICES_MIN = 8,
    QUARTERS = 4,
};

const char *growth_class_name(enum growth_class class)
{
    static const char *const names[GROWTH_COUNT] = {
        [GROWTH_UNKNOWN] = "unknown", [GROWTH_GROWING] = "growing", [GROWTH_START_UP] = "start_up",
        [GROWTH_LATE] = "late",       [GROWTH_STEADY] = "steady",
    };
    return class < GROWTH_COUNT ? names[class] : "unknown";
}

bool growth_is_known(const struct recording *recording)
{
    return time_range_is_known(recording) && recording->slice_count >= SLICES_MIN;
}

static size_t quarter_begin(size_t slice_count, size_t quarter)
{
    return slice_count * quarter / QUARTERS;
}

static uint64_t
lowest_of_quarter(const struct timeline_point *points, size_t slice_count, size_t quarter)
{
    uint64_t lowest = UINT64_MAX;
    for (size_t i = quarter_begin(slice_count, quarter);
         i < quarter_begin(slice_count, quarter + 1); i++) {
        lowest = points[i].live_bytes < lowest ? points[i].live_bytes : lowest;
    }
    return lowest;
}

static bool is_growing(const struct timeline_point *points, size_t slice_count)
{
    uint64_t second = lowest_of_quarter(points, slice_count, 1);
    uint64_t third = lowest_of_quarter(points, slice_count, 2);
    uint64_t fourth = lowest_of_quarter(points, slice_count, 3);
    return second < third && third < fourth && fourth - second >= second / 10;
}

static bool is_late(const struct timeline_point *points, size_t slice_count)
{
    for (size_t i = 0; i < quarter_begin(slice_count, 3); i++) {
        if (points[i].live_bytes > 0) {
            return false;
        }
    }
    return true;
}

// The slice in which the youngest block that is alive at the end was born; 0 if there is none.
static uint32_t last_survivor(const struct row_groups *groups, uint32_t group)
{
    const struct recording *recording = &groups->profile->recording;
    uint32_t latest = 0;
    for (uint32_t i = groups->row_first.items[group]; i < groups->row_first.items[group + 1]; i++) {
        uint32_t row = groups->rows.items[i];
        size_t at = first_entry_of_row(recording->cohorts, recording->cohort_count,
                                       sizeof(recording->cohorts[0]), row);
        for (; at < recording->cohort_count && recording->cohorts[at].row == row; at++) {
            const struct rec_cohort *cohort = &recording->cohorts[at];
            if (cohort->freed_slice == REC_NONE && cohort->born_slice > latest) {
                latest = cohort->born_slice;
            }
        }
    }
    return latest;
}

static double slope_of(const struct timeline_point *points, size_t slice_count, uint64_t slice_ms)
{
    size_t first = quarter_begin(slice_count, 1);
    double count = (double)(slice_count - first);
    double mean_time = (count - 1) / 2;
    double mean_bytes = 0;
    for (size_t i = first; i < slice_count; i++) {
        mean_bytes += (double)points[i].live_bytes / count;
    }
    double together = 0;
    double spread = 0;
    for (size_t i = first; i < slice_count; i++) {
        double time = (double)(i - first) - mean_time;
        together += time * ((double)points[i].live_bytes - mean_bytes);
        spread += time * time;
    }
    return spread > 0 ? together / spread * 1000 / (double)slice_ms : 0;
}

static enum growth_class
class_of(const struct growth *growth, uint32_t group, const struct timeline_point_vec *points)
{
    if (is_late(points->items, points->len)) {
        return GROWTH_LATE;
    }
    if (last_survivor(&growth->groups, group) < quarter_begin(points->len, 1)) {
        return GROWTH_START_UP;
    }
    return is_growing(points->items, points->len) ? GROWTH_GROWING : GROWTH_STEADY;
}

static void
describe(const struct growth *growth, struct timeline_point_vec *points, struct growth_entry *entry)
{
    const struct recording *recording = &growth->groups.profile->recording;
    row_groups_timeline(&growth->groups, entry->group, points->items);
    for (uint32_t i = 0; i < points->len; i++) {
        if (points->items[i].allocations > 0) {
            entry->first_slice = entry->first_slice == REC_NONE ? i : entry->first_slice;
            entry->last_slice = i;
        }
    }
    if (growth_is_known(recording)) {
        entry->class = class_of(growth, entry->group, points);
        entry->slope_bytes_per_s = slope_of(points->items, points->len, recording->slice_ms);
    }
}

static int compare_entries(const void *left, const void *right, void *context)
{
    const struct row_group *groups = context;
    const struct growth_entry *a = left;
    const struct growth_entry *b = right;
    uint64_t a_bytes = costs_get(&groups[a->group].costs, COST_LEAKED_BYTES);
    uint64_t b_bytes = costs_get(&groups[b->group].costs, COST_LEAKED_BYTES);
    if (a_bytes != b_bytes) {
        return a_bytes > b_bytes ? -1 : 1;
    }
    return a->group < b->group ? -1 : a->group > b->group;
}

enum err growth_build(const struct selection *selection,
                      enum row_group_by by,
                      size_t described_max,
                      struct growth *out)
{
    CLEANUP(growth_release) struct growth growth = {0};
    CLEANUP(timeline_point_vec_release) struct timeline_point_vec points = {0};
    TRY(timeline_point_vec_resize(&points, selection->profile->recording.slice_count));
    TRY(row_groups_build(selection, by, &growth.groups));
    const struct row_group_vec *groups = &growth.groups.groups;
    for (size_t i = 0; i < groups->len; i++) {
        if (costs_get(&groups->items[i].costs, COST_LEAKED_ALLOCATIONS) > 0) {
            struct growth_entry entry = {
                .group = (uint32_t)i, .first_slice = REC_NONE, .last_slice = REC_NONE};
            TRY(growth_entry_vec_push(&growth.entries, entry));
        }
    }
    if (growth.entries.len > 1) {
        qsort_r(growth.entries.items, growth.entries.len, sizeof(growth.entries.items[0]),
                compare_entries, groups->items);
    }
    cancel_stage(selection->cancel,
                 growth.entries.len < described_max ? growth.entries.len : described_max);
    for (size_t i = 0; i < growth.entries.len && i < described_max; i++) {
        TRY(cancel_step(selection->cancel));
        describe(&growth, &points, &growth.entries.items[i]);
    }
    *out = growth;
    growth = (struct growth){0};
    return ERR_OK;
}

void growth_release(struct growth *growth)
{
    row_groups_release(&growth->groups);
    growth_entry_vec_release(&growth->entries);
}
