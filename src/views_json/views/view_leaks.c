// SPDX-License-Identifier: MIT
// view_leaks: the memory that is live at the end, and its growth.
#include <math.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "views_json/views/views.h"

enum {
    HISTORY_PARTS = 32,
    HISTORY_ROWS_MAX = 1000,
};

struct leak_row {
    struct place place;
    bool inlined;
    uint32_t stack_count;
    struct frame_list frames; // empty if grouped by call site
    const struct costs *costs;
    const char *growth;
    const char *growth_confidence;
    double slope_bytes_per_s; // NAN unless it is growing
    double slope_error;       // the same
    uint64_t slope_ms;        // VALUE_UNKNOWN unless it is growing
    uint64_t grew_until_ms;   // VALUE_UNKNOWN unless there was no work later
    uint64_t latest_kept_ms;
    uint64_t first_ms;
    uint64_t last_ms;
};

DEFINE_VEC(leak_row_vec, struct leak_row);

static const struct column leak_columns[] = {
    COLUMN(CELL_LOCATION, leak_row, place),
    COLUMN(CELL_BOOL, leak_row, inlined),
    COLUMN(CELL_U32, leak_row, stack_count),
    COLUMN(CELL_FRAMES, leak_row, frames),
    COLUMN(CELL_COSTS_AT, leak_row, costs),
    COLUMN_ERRORS("errors", CELL_ERRORS_AT, leak_row, costs),
    COLUMN(CELL_TEXT, leak_row, growth),
    COLUMN(CELL_TEXT, leak_row, growth_confidence),
    COLUMN(CELL_DOUBLE, leak_row, slope_bytes_per_s),
    COLUMN_WHEN(WHEN_SAMPLED, CELL_DOUBLE, leak_row, slope_error),
    COLUMN(CELL_OPTIONAL, leak_row, slope_ms),
    COLUMN(CELL_OPTIONAL, leak_row, grew_until_ms),
    COLUMN(CELL_OPTIONAL, leak_row, latest_kept_ms),
    COLUMN(CELL_OPTIONAL, leak_row, first_ms),
    COLUMN(CELL_OPTIONAL, leak_row, last_ms),
};

// The start of `slice`, plus `end` slices, in milliseconds.
static uint64_t time_of(uint32_t slice, uint64_t slice_ms, uint32_t end)
{
    return slice == REC_NONE ? VALUE_UNKNOWN : (slice + (uint64_t)end) * slice_ms;
}

// `counts`: of sites without stacks; NULL: they have them.
static struct leak_row row_of(const struct growth *growth,
                              const struct growth_entry *entry,
                              const struct stack_counts *counts)
{
    const struct row_groups *groups = &growth->groups;
    const struct row_group *group = &groups->groups.items[entry->group];
    const struct call_site *site = &groups->sites.sites.items[group->site];
    const uint64_t slice_ms = groups->profile->recording.slice_ms;
    bool is_growing = entry->class == GROWTH_GROWING;
    return (struct leak_row){
        .place = {SIDE_NEW, site->location},
        .inlined = site->is_inlined,
        .stack_count = counts != NULL ? stack_counts_all(counts, group->site) : group->stack_count,
        .frames = {.tree = &groups->sites.tree,
                   .node = group->stack != REC_NONE ? group->stack : 0},
        .costs = &group->costs,
        .growth = growth_class_name(entry->class),
        .growth_confidence = growth_confidence_name(entry->confidence),
        .slope_bytes_per_s = is_growing ? entry->slope_bytes_per_s : (double)NAN,
        .slope_error = is_growing ? entry->slope_error : (double)NAN,
        .slope_ms = is_growing ? entry->slope_ms : VALUE_UNKNOWN,
        .grew_until_ms = entry->until_ms > 0 ? entry->until_ms : VALUE_UNKNOWN,
        .latest_kept_ms = time_of(entry->latest_birth_slice, slice_ms, 1),
        .first_ms = time_of(entry->first_slice, slice_ms, 0),
        .last_ms = time_of(entry->last_slice, slice_ms, 1),
    };
}

// Append the history of one row: its highest live bytes in each part of the run, in hundredths of
// the highest of all parts.
static void push_history(const struct growth *growth,
                         uint32_t group,
                         struct timeline_point_vec *points,
                         struct u64_vec *out)
{
    uint64_t parts[HISTORY_PARTS] = {0};
    uint64_t highest = 1;
    row_groups_timeline(&growth->groups, group, points->items);
    for (size_t i = 0; i < points->len; i++) {
        uint64_t *part = &parts[i * HISTORY_PARTS / points->len];
        *part = max_u64(*part, points->items[i].live_bytes);
        highest = max_u64(highest, *part);
    }
    for (size_t i = 0; i < HISTORY_PARTS; i++) {
        u64_vec_add(out, (uint64_t)((double)parts[i] / (double)highest * 100));
    }
}

// Write the history of each row of the table, for pages that draw it.
static MUST_USE enum err
write_history(struct view *view, const struct growth *growth, const struct leaks_options *options)
{
    CLEANUP(timeline_point_vec_release) struct timeline_point_vec points = {0};
    CLEANUP(u64_vec_release) struct u64_vec history = {0};
    const struct recording *recording = &growth->groups.profile->recording;
    const size_t limit = options->limit > 0 ? options->limit : SIZE_MAX;
    const size_t most = limit < HISTORY_ROWS_MAX ? limit : HISTORY_ROWS_MAX;
    TRY(timeline_point_vec_resize(&points, recording->slice_count));
    for (size_t i = 0; i < growth->entries.len && history.len < most * HISTORY_PARTS; i++) {
        const struct growth_entry *entry = &growth->entries.items[i];
        if (recording->slice_count >= HISTORY_PARTS &&
            (!options->has_class || entry->class == options->class)) {
            push_history(growth, entry->group, &points, &history);
        }
    }
    json_key_u64(view->w, "history_parts", HISTORY_PARTS);
    view_numbers(view, "history", history.items, history.len);
    return ERR_OK;
}

static MUST_USE enum err write_leaks(struct view *view,
                                     const struct growth *growth,
                                     const struct stack_counts *counts,
                                     const struct leaks_options *options)
{
    CLEANUP(leak_row_vec_release) struct leak_row_vec rows = {0};
    const size_t limit = options->limit > 0 ? options->limit : SIZE_MAX;
    size_t total = 0;
    for (size_t i = 0; i < growth->entries.len; i++) {
        const struct growth_entry *entry = &growth->entries.items[i];
        bool is_wanted = !options->has_class || entry->class == options->class;
        total += is_wanted;
        if (is_wanted && rows.len < limit) {
            TRY(leak_row_vec_push(&rows, row_of(growth, entry, counts)));
        }
    }
    json_key_u64(view->w, "total_count", total);
    view_table(view, &TABLE("leaks", leak_columns, rows.items, rows.len));
    return view->layout == VIEW_COLUMNS ? write_history(view, growth, options) : ERR_OK;
}

enum err view_leaks(struct view *view, const struct leaks_options *options)
{
    CLEANUP(growth_release) struct growth built = {0};
    CLEANUP(stack_counts_release) struct stack_counts counts = {0};
    if (options->growth != NULL) {
        return write_leaks(view, options->growth, NULL, options);
    }
    const bool is_limited = options->limit > 0 && !options->has_class;
    const bool is_alone = options->by == ROW_GROUPS_BY_SITE_ALONE;
    TRY(growth_build(view->selection, options->by, is_limited ? options->limit : SIZE_MAX, &built));
    TRY(is_alone ? stack_counts_build(view->selection, &counts) : ERR_OK);
    return write_leaks(view, &built, is_alone ? &counts : NULL, options);
}
