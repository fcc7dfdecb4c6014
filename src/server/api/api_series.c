// SPDX-License-Identifier: MIT
// api_series: /api/v1/series: charts over time.
#include "base/compiler.h"
#include "profile/tables/ledger.h"
#include "profile/time/top_series.h"
#include "server/api/api.h"
#include "server/columns/columns.h"
#include "server/columns/told_stacks.h"

enum {
    TOP_BY_DEFAULT = 10
};

// A column of the points that is the same field in each.
struct point_column {
    const char *key;
    size_t offset; // in struct timeline_point
};

static const struct point_column point_columns[] = {
    {"allocations", offsetof(struct timeline_point, allocations)},
    {"allocated_bytes", offsetof(struct timeline_point, allocated_bytes)},
    {"frees", offsetof(struct timeline_point, frees)},
    {"freed_bytes", offsetof(struct timeline_point, freed_bytes)},
    {"temporary", offsetof(struct timeline_point, temporary)},
    {"live_bytes", offsetof(struct timeline_point, live_bytes)},
};

static void write_times(const struct recording *recording, struct json_writer *w)
{
    column_begin(w, "start_ms");
    for (size_t i = 0; i < recording->slice_count; i++) {
        json_u64(w, i * recording->slice_ms);
    }
    column_end(w);
    column_begin(w, "end_ms");
    for (size_t i = 0; i < recording->slice_count; i++) {
        json_u64(w, (i + 1) * recording->slice_ms);
    }
    column_end(w);
}

// The highest within each slice: recorded for the whole, else the higher of its two ends.
static void write_highest(const struct question *q,
                          const struct timeline_point_vec *points,
                          struct json_writer *w)
{
    const struct rec_slice *slices = q->profile->recording.slices;
    column_begin(w, "live_max_bytes");
    for (size_t i = 0; i < points->len; i++) {
        uint64_t before = i > 0 ? points->items[i - 1].live_bytes : 0;
        uint64_t after = points->items[i].live_bytes;
        uint64_t highest = before > after ? before : after;
        json_u64(w, q->selection.is_everything ? slices[i].live_max_bytes : highest);
    }
    column_end(w);
}

static void write_points(const struct question *q,
                         const struct timeline_point_vec *points,
                         struct json_writer *w)
{
    table_begin(w, "points", points->len);
    write_times(&q->profile->recording, w);
    for (size_t c = 0; c < ARRAY_LEN(point_columns); c++) {
        column_begin(w, point_columns[c].key);
        for (size_t i = 0; i < points->len; i++) {
            const char *point = (const char *)&points->items[i];
            json_u64(w, *(const uint64_t *)(const void *)(point + point_columns[c].offset));
        }
        column_end(w);
    }
    write_highest(q, points, w);
    table_end(w);
}

static void write_frames(const struct top_series *series,
                         const struct row_group *group,
                         struct code_tables *tables,
                         struct json_writer *w)
{
    const struct call_tree *tree = &series->groups.sites.tree;
    json_key(w, "frames");
    json_begin_array(w);
    for (uint32_t node = group->stack; node != REC_NONE && node != 0;
         node = tree->nodes.items[node].parent) {
        uint32_t location = tree->nodes.items[node].location;
        json_position(w, code_tables_location(tables, SIDE_NEW, location));
    }
    json_end_array(w);
}

static void
write_top(const struct top_series *series, struct code_tables *tables, struct json_writer *w)
{
    json_key(w, "top");
    json_begin_array(w);
    for (size_t i = 0; i < series->top.len; i++) {
        const struct top_series_entry *entry = &series->top.items[i];
        uint32_t location = row_groups_location(&series->groups, entry->group);
        json_begin_object(w);
        json_key(w, "location");
        json_position(w, code_tables_location(tables, SIDE_NEW, location));
        write_frames(series, &series->groups.groups.items[entry->group], tables, w);
        json_key_u64(w, "score", entry->score);
        column_of_numbers(w, "values", entry->values.items, entry->values.len);
        json_end_object(w);
    }
    json_end_array(w);
}

static MUST_USE enum err write_rss(const struct question *q, struct json_writer *w)
{
    CLEANUP(ledger_release) struct ledger ledger = {0};
    TRY(ledger_build(q->profile, q->filter.pid, &ledger));
    table_begin(w, "rss", ledger.samples.len);
    column_begin(w, "time_ms");
    for (size_t i = 0; i < ledger.samples.len; i++) {
        json_u64(w, ledger.samples.items[i].time_ms);
    }
    column_end(w);
    column_begin(w, "rss_bytes");
    for (size_t i = 0; i < ledger.samples.len; i++) {
        json_u64(w, ledger.samples.items[i].rss_bytes);
    }
    column_end(w);
    table_end(w);
    return ERR_OK;
}

static void write_peak(const struct recording *recording, struct json_writer *w)
{
    json_key(w, "peak");
    json_begin_object(w);
    json_key_u64(w, "time_ms", recording->totals.peak_time_ms);
    json_key_u64(w, "bytes", recording->totals.peak_bytes);
    json_end_object(w);
}

enum err api_series(struct question *q, struct json_writer *w)
{
    const struct recording *recording = &q->profile->recording;
    CLEANUP(code_tables_release) struct code_tables tables = {.code = q->code};
    CLEANUP(top_series_release) struct top_series series = {0};
    uint64_t value = request_number(q->request, PARAM_VALUE, SERIES_LIVE_BYTES);
    uint64_t by = request_number(q->request, PARAM_SITES_BY, ROW_GROUPS_BY_STACK);
    TRY(top_series_build(&q->selection, (enum series_value)value, (enum row_group_by)by,
                         request_number(q->request, PARAM_TOP, TOP_BY_DEFAULT), &series));
    json_key_u64(w, "slice_ms", recording->slice_ms);
    write_points(q, &series.timeline.points, w);
    json_key_string(w, "value", request_choice_name(PARAM_VALUE, value));
    write_top(&series, &tables, w);
    column_of_numbers(w, "rest", series.rest.items, series.rest.len);
    TRY(write_rss(q, w));
    write_peak(recording, w);
    return code_tables_write(&tables, w);
}
