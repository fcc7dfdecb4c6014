// SPDX-License-Identifier: MIT
// api_histograms: /api/v1/sizes, /lifetimes and /size_lifetime.
#include "base/compiler.h"
#include "profile/tables/histogram.h"
#include "server/api/api.h"
#include "server/columns/columns.h"

enum {
    TOP_BY_DEFAULT = 10
};

// The highest value that a bucket holds.
static uint64_t bucket_high(uint32_t bucket)
{
    uint64_t next = rec_bucket_low(bucket + 1);
    return next == UINT64_MAX ? UINT64_MAX : next - 1;
}

static void write_amounts(const struct bucket_amount_vec *amounts, struct json_writer *w)
{
    column_begin(w, "blocks");
    for (size_t i = 0; i < amounts->len; i++) {
        json_u64(w, amounts->items[i].count);
    }
    column_end(w);
    column_begin(w, "bytes");
    for (size_t i = 0; i < amounts->len; i++) {
        json_u64(w, amounts->items[i].bytes);
    }
    column_end(w);
}

static void write_bounds(uint32_t first, size_t count, struct json_writer *w)
{
    column_begin(w, "low");
    for (size_t i = 0; i < count; i++) {
        json_u64(w, rec_bucket_low(first + (uint32_t)i));
    }
    column_end(w);
    column_begin(w, "high");
    for (size_t i = 0; i < count; i++) {
        json_u64(w, bucket_high(first + (uint32_t)i));
    }
    column_end(w);
}

static void write_buckets(const struct histogram *histogram, struct json_writer *w)
{
    table_begin(w, "buckets", histogram->total.len);
    column_begin(w, "bucket");
    for (size_t i = 0; i < histogram->total.len; i++) {
        json_u64(w, histogram->first_bucket + i);
    }
    column_end(w);
    write_bounds(histogram->first_bucket, histogram->total.len, w);
    write_amounts(&histogram->total, w);
    table_end(w);
}

static void
write_top(const struct histogram *histogram, struct code_tables *tables, struct json_writer *w)
{
    json_key(w, "top");
    json_begin_array(w);
    for (size_t i = 0; i < histogram->top.len; i++) {
        const struct histogram_entry *entry = &histogram->top.items[i];
        uint32_t site = histogram->groups.groups.items[entry->group].site;
        const struct call_site *call_site = &histogram->groups.sites.sites.items[site];
        json_begin_object(w);
        json_key(w, "location");
        json_position(w, code_tables_location(tables, SIDE_NEW, call_site->location));
        json_key_bool(w, "inlined", call_site->is_inlined);
        write_amounts(&entry->amounts, w);
        json_end_object(w);
    }
    json_end_array(w);
}

static MUST_USE enum err
write_histogram(struct question *q, enum histogram_of of, const char *unit, struct json_writer *w)
{
    CLEANUP(code_tables_release) struct code_tables tables = {.code = q->code};
    CLEANUP(histogram_release) struct histogram histogram = {0};
    TRY(histogram_build(&q->selection, of, request_number(q->request, PARAM_RANK, 0) == 1,
                        request_number(q->request, PARAM_TOP, TOP_BY_DEFAULT), &histogram));
    json_key_string(w, "unit", unit);
    write_buckets(&histogram, w);
    write_top(&histogram, &tables, w);
    json_key(w, "rest");
    json_begin_object(w);
    write_amounts(&histogram.rest, w);
    json_end_object(w);
    return code_tables_write(&tables, w);
}

enum err api_sizes(struct question *q, struct json_writer *w)
{
    TRY(question_need(q, CAPABILITY_SIZES, "block sizes"));
    return write_histogram(q, HISTOGRAM_SIZES, "bytes", w);
}

enum err api_lifetimes(struct question *q, struct json_writer *w)
{
    TRY(question_need(q, CAPABILITY_LIFETIMES, "lifetimes"));
    return write_histogram(q, HISTOGRAM_LIFETIMES, "milliseconds", w);
}

// The range of one axis that is in use.
struct axis {
    uint32_t first;
    uint32_t end;
};

static void axis_cover(struct axis *axis, uint32_t bucket)
{
    axis->first = axis->end == 0 || bucket < axis->first ? bucket : axis->first;
    axis->end = bucket + 1 > axis->end ? bucket + 1 : axis->end;
}

static void write_axis(const char *key, struct axis axis, struct json_writer *w)
{
    table_begin(w, key, axis.end - axis.first);
    write_bounds(axis.first, axis.end - axis.first, w);
    table_end(w);
}

static void write_cells(const struct heat_cell_vec *cells,
                        struct axis sizes,
                        struct axis lifetimes,
                        struct json_writer *w)
{
    table_begin(w, "cells", cells->len);
    column_begin(w, "size");
    for (size_t i = 0; i < cells->len; i++) {
        json_u64(w, cells->items[i].size - sizes.first);
    }
    column_end(w);
    column_begin(w, "lifetime");
    for (size_t i = 0; i < cells->len; i++) {
        json_u64(w, cells->items[i].lifetime - lifetimes.first);
    }
    column_end(w);
    column_begin(w, "blocks");
    for (size_t i = 0; i < cells->len; i++) {
        json_u64(w, cells->items[i].certain);
    }
    column_end(w);
    column_begin(w, "estimated_blocks");
    for (size_t i = 0; i < cells->len; i++) {
        json_u64(w, cells->items[i].estimated);
    }
    column_end(w);
    table_end(w);
}

enum err api_size_lifetime(struct question *q, struct json_writer *w)
{
    CLEANUP(heat_cell_vec_release) struct heat_cell_vec cells = {0};
    struct axis sizes = {0};
    struct axis lifetimes = {0};
    uint64_t certain = 0;
    uint64_t total = 0;
    TRY(question_need(q, CAPABILITY_SIZES, "block sizes"));
    TRY(question_need(q, CAPABILITY_LIFETIMES, "lifetimes"));
    TRY(heat_map_build(&q->selection, &cells));
    for (size_t i = 0; i < cells.len; i++) {
        axis_cover(&sizes, cells.items[i].size);
        axis_cover(&lifetimes, cells.items[i].lifetime);
        certain += cells.items[i].certain;
        total += cells.items[i].certain + cells.items[i].estimated;
    }
    write_axis("sizes", sizes, w);
    write_axis("lifetimes", lifetimes, w);
    write_cells(&cells, sizes, lifetimes, w);
    json_key_u64(w, "certain_blocks", certain);
    json_key_u64(w, "total_blocks", total);
    return ERR_OK;
}
