// SPDX-License-Identifier: MIT
#include "profile/time/cut_timeline.h"

#include "base/compiler.h"
#include "base/minmax.h"

static bool wants(const struct time_range *range, enum block_class class)
{
    return (range->classes & class) != 0;
}

bool cut_timeline_is_known(const struct selection *selection)
{
    return selection->lifetimes.first == 0 && selection->lifetimes.end == REC_BUCKET_COUNT;
}

// Add all events of a row within the range. This is exact if each class with births or deaths there
// is wanted.
static void
add_cells(const struct recording *recording, uint32_t row, struct cut_timeline *timeline)
{
    FOR_ENTRIES_OF_ROW (cell, recording->cells, recording->cell_count, row) {
        if (cell->slice >= timeline->first && cell->slice < timeline->end) {
            timeline_point_add(&timeline->points.items[cell->slice], cell);
        }
    }
}

static void correct(uint64_t *blocks, uint64_t *bytes, const struct rec_cohort *part, bool is_more)
{
    *blocks = is_more ? *blocks + part->blocks : excess_u64(*blocks, part->blocks);
    *bytes = is_more ? *bytes + part->bytes : excess_u64(*bytes, part->bytes);
}

// Cells were added if BLOCKS_IN_IN is wanted. Of the classes that cross one end of the range,
// subtract the unwanted ones then; else add the wanted ones.
static void add_cohort(const struct rec_cohort *cohort,
                       const struct time_range *range,
                       uint32_t left,
                       struct cut_timeline *timeline)
{
    struct timeline_point *points = timeline->points.items;
    bool has_cells = wants(range, BLOCKS_IN_IN);
    bool is_freed_inside = cohort->freed_slice < range->end; // REC_NONE is above all slices
    enum block_class class = time_range_class(range, cohort);
    if (cohort->freed_slice == REC_NONE && left < range->end && wants(range, class)) {
        points[left].left_bytes += cohort->bytes;
    }
    if (cohort->born_slice < range->first) {
        timeline->before_bytes += wants(range, class) ? cohort->bytes : 0;
        if (is_freed_inside && wants(range, class) != has_cells) {
            struct timeline_point *point = &points[cohort->freed_slice];
            correct(&point->frees, &point->freed_bytes, cohort, !has_cells);
        }
    } else if (!is_freed_inside && wants(range, class) != has_cells) {
        struct timeline_point *point = &points[cohort->born_slice];
        correct(&point->allocations, &point->allocated_bytes, cohort, !has_cells);
    }
}

static void add_row(const struct selection *selection, uint32_t row, struct cut_timeline *timeline)
{
    const struct profile *profile = selection->profile;
    const struct recording *recording = &profile->recording;
    const struct time_range *range = &selection->range;
    const uint32_t left =
        process_lives_left_of_cells(&profile->lives, profile_process_of_row(profile, row));
    if (wants(range, BLOCKS_IN_IN)) {
        add_cells(recording, row, timeline);
    }
    FOR_ENTRIES_OF_ROW (cohort, recording->cohorts, recording->cohort_count, row) {
        if (cohort->born_slice < range->end && !time_range_is_over(range, cohort, left)) {
            add_cohort(cohort, range, left, timeline);
        }
    }
}

static void compute_live(struct cut_timeline *timeline)
{
    timeline_points_add_up(timeline->points.items + timeline->first,
                           timeline->end - timeline->first, timeline->before_bytes);
}

// Add the wanted share of one row's time line, whose live_bytes are complete, to the sum.
static void add_share(const struct cut_timeline *row,
                      const struct bucket_share *share,
                      struct cut_timeline *timeline)
{
    timeline->before_bytes += bucket_share_bytes(share, row->before_bytes);
    for (uint32_t i = row->first; i < row->end; i++) {
        const struct timeline_point *from = &row->points.items[i];
        struct timeline_point *to = &timeline->points.items[i];
        to->allocations += bucket_share_blocks(share, from->allocations);
        to->allocated_bytes += bucket_share_bytes(share, from->allocated_bytes);
        to->frees += bucket_share_blocks(share, from->frees);
        to->freed_bytes += bucket_share_bytes(share, from->freed_bytes);
        to->temporary += bucket_share_blocks(share, from->temporary);
        to->left_bytes += bucket_share_bytes(share, from->left_bytes);
        to->live_bytes += bucket_share_bytes(share, from->live_bytes);
    }
}

static void clear(struct cut_timeline *timeline)
{
    timeline->before_bytes = 0;
    for (uint32_t i = timeline->first; i < timeline->end; i++) {
        timeline->points.items[i] = (struct timeline_point){0};
    }
}

static MUST_USE enum err init(const struct selection *selection, struct cut_timeline *timeline)
{
    const struct recording *recording = &selection->profile->recording;
    *timeline = (struct cut_timeline){.slice_ms = recording->slice_ms,
                                      .first = selection->range.first,
                                      .end = selection->range.end};
    return timeline_point_vec_resize(&timeline->points, recording->slice_count);
}

enum err cut_timeline_of_rows(const struct selection *selection,
                              const uint32_t *rows,
                              size_t count,
                              struct cut_timeline *out)
{
    const struct recording *recording = &selection->profile->recording;
    CLEANUP(cut_timeline_release) struct cut_timeline timeline = {0};
    CLEANUP(cut_timeline_release) struct cut_timeline single = {0};
    CLEANUP(u32_vec_release) struct u32_vec partial = {0};
    TRY(init(selection, &timeline));
    TRY(init(selection, &single));
    for (size_t i = 0; i < count; i++) {
        struct bucket_share share = bucket_share_of_sizes(recording, rows[i], selection->sizes);
        if (bucket_share_is_all(&share)) {
            add_row(selection, rows[i], &timeline);
        } else {
            TRY(u32_vec_push(&partial, rows[i]));
        }
    }
    compute_live(&timeline);
    for (size_t i = 0; i < partial.len; i++) {
        struct bucket_share share =
            bucket_share_of_sizes(recording, partial.items[i], selection->sizes);
        clear(&single);
        add_row(selection, partial.items[i], &single);
        compute_live(&single);
        add_share(&single, &share, &timeline);
    }
    timeline_points_limit(timeline.points.items, timeline.points.len, recording);
    *out = TAKE(timeline);
    return ERR_OK;
}

enum err cut_timeline_build(const struct selection *selection, struct cut_timeline *out)
{
    return cut_timeline_of_rows(selection, selection->rows.items, selection->rows.len, out);
}

void cut_timeline_release(struct cut_timeline *timeline)
{
    timeline_point_vec_release(&timeline->points);
}
