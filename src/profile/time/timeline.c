// SPDX-License-Identifier: MIT
// timeline: adds up the cells of the selected rows by slice. See timeline.h.
#include "profile/time/timeline.h"

#include "base/compiler.h"
#include "base/minmax.h"

void timeline_point_add(struct timeline_point *point, const struct rec_cell *cell)
{
    point->allocations += cell->allocations;
    point->allocated_bytes += cell->allocated_bytes;
    point->frees += cell->frees;
    point->freed_bytes += cell->freed_bytes;
    point->temporary += cell->temporary;
}

void timeline_points_leave(struct timeline_point *points,
                           const struct profile *profile,
                           uint32_t row)
{
    if (!profile->lives.some_leave) {
        return;
    }
    const struct rec_row *r = &profile->recording.rows[row];
    const uint32_t process = profile_process_of_row(profile, row);
    const uint32_t left = process_lives_left_of_cells(&profile->lives, process);
    if (left != REC_NONE && r->allocated_bytes > r->freed_bytes) {
        points[left].left_bytes += r->allocated_bytes - r->freed_bytes;
    }
}

void timeline_points_add_up(struct timeline_point *points, size_t count, uint64_t before_bytes)
{
    uint64_t live_bytes = before_bytes;
    for (size_t i = 0; i < count; i++) {
        live_bytes = excess_u64(live_bytes + points[i].allocated_bytes,
                                points[i].freed_bytes + points[i].left_bytes);
        points[i].live_bytes = live_bytes;
    }
}

void timeline_points_limit(struct timeline_point *points,
                           size_t count,
                           const struct recording *recording)
{
    const uint64_t most_bytes = recording->totals.peak_bytes; // 0: an import without a peak
    const bool has_limit = most_bytes != 0 && !sampling_has_errors(recording);
    for (size_t i = 0; has_limit && i < count; i++) {
        points[i].live_bytes = min_u64(points[i].live_bytes, most_bytes);
    }
}

// Take the recorder's own counts for the whole recording.
static void take_slices(const struct recording *recording, struct timeline_point_vec *points)
{
    for (size_t i = 0; i < points->len; i++) {
        const struct rec_slice *slice = &recording->slices[i];
        points->items[i] = (struct timeline_point){
            .allocations = slice->allocations,
            .allocated_bytes = slice->allocated_bytes,
            .frees = slice->frees,
            .freed_bytes = slice->freed_bytes,
            .temporary = slice->temporary,
            .live_bytes = slice->live_bytes,
        };
    }
}

static void add_rows(const struct selection *selection, struct timeline_point_vec *points)
{
    const struct recording *recording = &selection->profile->recording;
    // Selected rows and cells are both sorted by row: one pass over each.
    size_t at = 0;
    for (size_t i = 0; i < recording->cell_count; i++) {
        const struct rec_cell *cell = &recording->cells[i];
        while (at < selection->rows.len && selection->rows.items[at] < cell->row) {
            at++;
        }
        bool is_selected = at < selection->rows.len && selection->rows.items[at] == cell->row;
        if (is_selected && cell->slice < points->len) {
            timeline_point_add(&points->items[cell->slice], cell);
        }
    }
    for (size_t i = 0; i < selection->rows.len && recording->cell_count > 0; i++) {
        timeline_points_leave(points->items, selection->profile, selection->rows.items[i]);
    }
    timeline_points_add_up(points->items, points->len, 0);
    timeline_points_limit(points->items, points->len, recording);
}

enum err timeline_build(const struct selection *selection, struct timeline *out)
{
    const struct recording *recording = &selection->profile->recording;
    CLEANUP(timeline_release) struct timeline timeline = {.slice_ms = recording->slice_ms};
    TRY(timeline_point_vec_resize(&timeline.points, recording->slice_count));
    if (selection->is_everything) {
        take_slices(recording, &timeline.points);
    } else {
        add_rows(selection, &timeline.points);
    }
    *out = TAKE(timeline);
    return ERR_OK;
}

struct timeline_errors timeline_errors_of(const struct selection *selection)
{
    struct timeline_errors errors = {.sampling = sampling_of(&selection->profile->recording)};
    for (size_t i = 0; errors.sampling.bytes != 0 && i < selection->rows.len; i++) {
        const struct costs costs = selection_costs(selection, i);
        sampled_sizes_add(&errors.sizes, &costs.sizes);
    }
    return errors;
}

struct timeline_point timeline_point_error(const struct timeline_errors *errors,
                                           const struct timeline_point *point)
{
    const struct costs costs = {.values = {[COST_ALLOCATIONS] = point->allocations,
                                           [COST_ALLOCATED_BYTES] = point->allocated_bytes,
                                           [COST_FREES] = point->frees,
                                           [COST_FREED_BYTES] = point->freed_bytes,
                                           [COST_TEMPORARY] = point->temporary,
                                           [COST_PEAK_BYTES] = point->live_bytes},
                                .sizes = errors->sizes};
    const struct costs found = sampling_errors(&errors->sampling, &costs);
    return (struct timeline_point){
        .allocations = costs_get(&found, COST_ALLOCATIONS),
        .allocated_bytes = costs_get(&found, COST_ALLOCATED_BYTES),
        .frees = costs_get(&found, COST_FREES),
        .freed_bytes = costs_get(&found, COST_FREED_BYTES),
        .temporary = costs_get(&found, COST_TEMPORARY),
        .live_bytes = costs_get(&found, COST_PEAK_BYTES),
    };
}

uint64_t timeline_highest_error(const struct timeline_errors *errors, uint64_t live_bytes)
{
    return sampling_error_of_bytes(&errors->sampling, live_bytes) * 3 / 2;
}

void timeline_release(struct timeline *timeline)
{
    timeline_point_vec_release(&timeline->points);
}
