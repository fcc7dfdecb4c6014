// SPDX-License-Identifier: MIT
// view_series: the run over time, as a whole and by the call paths with the highest values.
#include "base/compiler.h"
#include "views_json/views/views.h"

// A time slice of the run.
struct point_row {
    uint64_t start_ms;
    uint64_t end_ms;
    struct timeline_point point;
    uint64_t live_max_bytes;
    struct timeline_point error;
    uint64_t live_max_bytes_error;
};

DEFINE_VEC(point_row_vec, struct point_row);

#define ERROR_COLUMN(key, field) COLUMN_AS_WHEN(key, WHEN_SAMPLED, CELL_OPTIONAL, point_row, field)

static const struct column point_columns[] = {
    COLUMN(CELL_U64, point_row, start_ms),
    COLUMN(CELL_U64, point_row, end_ms),
    COLUMN_AS("allocations", CELL_OPTIONAL, point_row, point.allocations),
    COLUMN_AS("allocated_bytes", CELL_OPTIONAL, point_row, point.allocated_bytes),
    COLUMN_AS("frees", CELL_OPTIONAL, point_row, point.frees),
    COLUMN_AS("freed_bytes", CELL_OPTIONAL, point_row, point.freed_bytes),
    COLUMN_AS("temporary", CELL_OPTIONAL, point_row, point.temporary),
    COLUMN_AS("live_bytes", CELL_OPTIONAL, point_row, point.live_bytes),
    COLUMN(CELL_OPTIONAL, point_row, live_max_bytes),
    ERROR_COLUMN("allocations_error", error.allocations),
    ERROR_COLUMN("allocated_bytes_error", error.allocated_bytes),
    ERROR_COLUMN("frees_error", error.frees),
    ERROR_COLUMN("freed_bytes_error", error.freed_bytes),
    ERROR_COLUMN("temporary_error", error.temporary),
    ERROR_COLUMN("live_bytes_error", error.live_bytes),
    ERROR_COLUMN("live_max_bytes_error", live_max_bytes_error),
};

static void forget_figure(uint64_t *value, uint64_t *error, uint64_t known, enum cost cost)
{
    *value = (known >> cost & 1) != 0 ? *value : VALUE_UNKNOWN;
    *error = (known >> cost & 1) != 0 ? *error : VALUE_UNKNOWN;
}

static void forget_unknown(struct point_row *row, uint64_t known)
{
    struct timeline_point *point = &row->point;
    struct timeline_point *error = &row->error;
    forget_figure(&point->allocations, &error->allocations, known, COST_ALLOCATIONS);
    forget_figure(&point->allocated_bytes, &error->allocated_bytes, known, COST_ALLOCATED_BYTES);
    forget_figure(&point->frees, &error->frees, known, COST_FREES);
    forget_figure(&point->freed_bytes, &error->freed_bytes, known, COST_FREED_BYTES);
    forget_figure(&point->temporary, &error->temporary, known, COST_TEMPORARY);
    forget_figure(&point->live_bytes, &error->live_bytes, known, COST_PEAK_BYTES);
    forget_figure(&row->live_max_bytes, &row->live_max_bytes_error, known, COST_PEAK_BYTES);
}

// The highest level within a slice is recorded for the whole heap only. For a part, it is the
// higher of the levels at both ends.
void view_points(struct view *view, const struct points_options *options)
{
    CLEANUP(point_row_vec_release) struct point_row_vec rows = {0};
    const struct rec_slice *slices = view->profile->recording.slices;
    const struct timeline_errors errors = timeline_errors_of(view->selection);
    uint64_t before = 0;
    for (size_t i = 0; i < options->points->len; i++) {
        uint64_t after = options->points->items[i].live_bytes;
        uint64_t higher = before > after ? before : after;
        struct point_row row = {
            .start_ms = i * options->slice_ms,
            .end_ms = (i + 1) * options->slice_ms,
            .point = options->points->items[i],
            .live_max_bytes = view->selection->is_everything ? slices[i].live_max_bytes : higher,
        };
        row.error = timeline_point_error(&errors, &row.point);
        row.live_max_bytes_error = timeline_highest_error(&errors, row.live_max_bytes);
        forget_unknown(&row, options->known);
        point_row_vec_add(&rows, row);
        before = after;
    }
    view_table(view, &TABLE("points", point_columns, rows.items, rows.len));
}

// Write the errors of values, if they are known.
static void write_errors(struct view *view, const char *key, const struct u64_vec *errors)
{
    if (errors->len > 0) {
        view_numbers(view, key, errors->items, errors->len);
    }
}

static void write_top(struct view *view, const struct top_series *series)
{
    json_key_array(view->w, "top");
    for (size_t i = 0; i < series->top.len; i++) {
        const struct top_series_entry *entry = &series->top.items[i];
        uint32_t location = row_groups_location(&series->groups, entry->group);
        json_begin_object(view->w);
        view_location(view, (struct place){SIDE_NEW, location});
        const uint32_t stack = series->groups.groups.items[entry->group].stack;
        view_frames(view, &(struct frame_list){.tree = &series->groups.sites.tree,
                                               .node = stack != REC_NONE ? stack : 0});
        json_key_u64(view->w, "score", entry->score);
        view_numbers(view, "values", entry->values.items, entry->values.len);
        write_errors(view, "errors", &entry->errors);
        json_end_object(view->w);
    }
    json_end_array(view->w);
}

static const struct column rss_columns[] = {
    COLUMN(CELL_U64, rss_breakdown_sample, time_ms),
    COLUMN(CELL_U64, rss_breakdown_sample, rss_bytes),
};

static MUST_USE enum err write_rss(struct view *view)
{
    CLEANUP(rss_breakdown_release) struct rss_breakdown rss_breakdown = {0};
    TRY(rss_breakdown_build(view->profile, view->filter->pid, &rss_breakdown));
    view_table(view,
               &TABLE("rss", rss_columns, rss_breakdown.samples.items, rss_breakdown.samples.len));
    return ERR_OK;
}

enum err view_series(struct view *view, const struct series_options *options)
{
    const struct recording *recording = &view->profile->recording;
    CLEANUP(top_series_release) struct top_series series = {0};
    TRY(top_series_build(view->selection, options->value, options->by, options->top_count,
                         &series));
    view->has_code = view->layout == VIEW_COLUMNS;
    json_key_u64(view->w, "slice_ms", recording->slice_ms);
    view_points(view, &(struct points_options){.points = &series.timeline.points,
                                               .slice_ms = recording->slice_ms,
                                               .known = ~(uint64_t)view_unknown(view, SIDE_NEW)});
    json_key_string(view->w, "value", options->value_name);
    write_top(view, &series);
    view_numbers(view, "rest", series.rest.items, series.rest.len);
    write_errors(view, "rest_errors", &series.rest_errors);
    TRY(write_rss(view));
    json_key_object(view->w, "peak");
    const bool has_peak = profile_knows(view->profile, COST_PEAK_BYTES);
    json_key_known_u64(view->w, "time_ms", recording->totals.peak_time_ms, has_peak);
    json_key_known_u64(view->w, "bytes", recording->totals.peak_bytes, has_peak);
    if (series.errors.sampling.bytes != 0) {
        json_key_u64(view->w, "error", recording->totals.peak_error_bytes);
    }
    json_end_object(view->w);
    return ERR_OK;
}
