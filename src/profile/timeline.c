// SPDX-License-Identifier: MIT
// timeline: adding the cells of the selected rows up by slice. See timeline.h.
#include "profile/timeline.h"

#include "base/compiler.h"

void timeline_point_add(struct timeline_point *point, const struct rec_cell *cell)
{
    point->allocations += cell->allocations;
    point->allocated_bytes += cell->allocated_bytes;
    point->frees += cell->frees;
    point->freed_bytes += cell->freed_bytes;
    point->temporary += cell->temporary;
}

void timeline_points_settle(struct timeline_point *points, size_t count)
{
    uint64_t live_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        live_bytes += points[i].allocated_bytes;
        live_bytes -= points[i].freed_bytes < live_bytes ? points[i].freed_bytes : live_bytes;
        points[i].live_bytes = live_bytes;
    }
}

enum err timeline_build(const struct selection *selection, struct timeline *out)
{
    const struct recording *recording = &selection->profile->recording;
    CLEANUP(timeline_release) struct timeline timeline = {.slice_ms = recording->slice_ms};
    TRY(timeline_point_vec_resize(&timeline.points, recording->slice_count));
    // Rows of the selection and cells are both sorted by row: one pass over each.
    size_t at = 0;
    for (size_t i = 0; i < recording->cell_count; i++) {
        const struct rec_cell *cell = &recording->cells[i];
        while (at < selection->rows.len && selection->rows.items[at] < cell->row) {
            at++;
        }
        bool is_selected = at < selection->rows.len && selection->rows.items[at] == cell->row;
        if (is_selected && cell->slice < timeline.points.len) {
            timeline_point_add(&timeline.points.items[cell->slice], cell);
        }
    }
    timeline_points_settle(timeline.points.items, timeline.points.len);
    *out = timeline;
    timeline = (struct timeline){0};
    return ERR_OK;
}

void timeline_release(struct timeline *timeline)
{
    timeline_point_vec_release(&timeline->points);
}
