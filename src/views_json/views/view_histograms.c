// SPDX-License-Identifier: MIT
// view_histograms: sizes of blocks, lifetimes of freed blocks, and both together.
#include "base/compiler.h"
#include "profile/accuracy/sampling.h"
#include "views_json/views/views.h"

// A bucket with its bounds, both included.
struct bucket_row {
    uint64_t bucket;
    uint64_t low;
    uint64_t high;
    struct bucket_amount amount;
    uint64_t blocks_error;
    uint64_t bytes_error;
};

DEFINE_VEC(bucket_row_vec, struct bucket_row);

static const struct column bucket_columns[] = {
    COLUMN(CELL_U64, bucket_row, bucket),
    COLUMN(CELL_U64, bucket_row, low),
    COLUMN(CELL_U64, bucket_row, high),
    COLUMN_AS("blocks", CELL_U64, bucket_row, amount.count),
    COLUMN_AS("bytes", CELL_U64, bucket_row, amount.bytes),
    COLUMN_WHEN(WHEN_SAMPLED, CELL_U64, bucket_row, blocks_error),
    COLUMN_WHEN(WHEN_SAMPLED, CELL_U64, bucket_row, bytes_error),
};

static const struct column axis_columns[] = {
    COLUMN(CELL_U64, bucket_row, low),
    COLUMN(CELL_U64, bucket_row, high),
};

static struct bucket_row row_of_bucket(uint32_t bucket)
{
    const struct bucket_range range = {.first = bucket, .end = bucket + 1};
    return (struct bucket_row){
        .bucket = bucket, .low = bucket_range_low(range), .high = bucket_range_high(range)};
}

static void write_buckets(struct view *view, const struct histogram *histogram)
{
    CLEANUP(bucket_row_vec_release) struct bucket_row_vec rows = {0};
    const struct sampling sampling = sampling_of(&view->profile->recording);
    for (size_t i = 0; i < histogram->total.len; i++) {
        struct bucket_row row = row_of_bucket(histogram->first_bucket + (uint32_t)i);
        const struct costs costs = histogram_costs(histogram, i);
        const struct costs errors = sampling_errors(&sampling, &costs);
        row.amount = histogram->total.items[i];
        row.blocks_error = costs_get(&errors, COST_ALLOCATIONS);
        row.bytes_error = costs_get(&errors, COST_ALLOCATED_BYTES);
        bucket_row_vec_add(&rows, row);
    }
    view_table(view, &TABLE("buckets", bucket_columns, rows.items, rows.len));
}

// Write two arrays with a number for each bucket.
static void write_amounts(struct json_writer *w, const struct bucket_amount_vec *amounts)
{
    json_key_array(w, "blocks");
    for (size_t i = 0; i < amounts->len; i++) {
        json_value_u64(w, amounts->items[i].count);
    }
    json_end_array(w);
    json_key_array(w, "bytes");
    for (size_t i = 0; i < amounts->len; i++) {
        json_value_u64(w, amounts->items[i].bytes);
    }
    json_end_array(w);
}

static void write_top(struct view *view, const struct histogram *histogram)
{
    json_key_array(view->w, "top");
    for (size_t i = 0; i < histogram->top.len; i++) {
        const struct histogram_entry *entry = &histogram->top.items[i];
        uint32_t site = histogram->groups.groups.items[entry->group].site;
        const struct call_site *call_site = &histogram->groups.sites.sites.items[site];
        json_begin_object(view->w);
        view_location(view, (struct place){SIDE_NEW, call_site->location});
        json_key_bool(view->w, "inlined", call_site->is_inlined);
        write_amounts(view->w, &entry->amounts);
        json_end_object(view->w);
    }
    json_end_array(view->w);
}

enum err view_histogram(struct view *view, const struct histogram_options *options)
{
    CLEANUP(histogram_release) struct histogram histogram = {0};
    TRY(histogram_build(view->selection, options->of, options->by_bytes, options->top_count,
                        &histogram));
    view->has_code = view->layout == VIEW_COLUMNS;
    json_key_string(view->w, "unit", options->of == HISTOGRAM_SIZES ? "bytes" : "milliseconds");
    write_buckets(view, &histogram);
    write_top(view, &histogram);
    json_key_object(view->w, "rest");
    write_amounts(view->w, &histogram.rest);
    json_end_object(view->w);
    return ERR_OK;
}

// The used buckets of one axis.
struct axis {
    uint32_t first;
    uint32_t end;
};

static void axis_cover(struct axis *axis, uint32_t bucket)
{
    axis->first = axis->end == 0 || bucket < axis->first ? bucket : axis->first;
    axis->end = bucket + 1 > axis->end ? bucket + 1 : axis->end;
}

static void write_axis(struct view *view, const char *key, struct axis axis)
{
    CLEANUP(bucket_row_vec_release) struct bucket_row_vec rows = {0};
    for (uint32_t bucket = axis.first; bucket < axis.end; bucket++) {
        bucket_row_vec_add(&rows, row_of_bucket(bucket));
    }
    view_table(view, &TABLE(key, axis_columns, rows.items, rows.len));
}

struct cell_row {
    struct heat_cell cell; // size and lifetime are indices on their axes
    uint64_t error;        // of all its blocks
};

DEFINE_VEC(cell_row_vec, struct cell_row);

static const struct column cell_columns[] = {
    COLUMN_AS("size", CELL_U32, cell_row, cell.size),
    COLUMN_AS("lifetime", CELL_U32, cell_row, cell.lifetime),
    COLUMN_AS("blocks", CELL_U64, cell_row, cell.certain),
    COLUMN_AS("estimated_blocks", CELL_U64, cell_row, cell.estimated),
    COLUMN_WHEN(WHEN_SAMPLED, CELL_U64, cell_row, error),
};

enum err view_size_lifetime(struct view *view)
{
    CLEANUP(heat_cell_vec_release) struct heat_cell_vec cells = {0};
    CLEANUP(cell_row_vec_release) struct cell_row_vec rows = {0};
    const struct sampling sampling = sampling_of(&view->profile->recording);
    struct axis sizes = {0};
    struct axis lifetimes = {0};
    uint64_t certain = 0;
    uint64_t total = 0;
    TRY(heat_map_build(view->selection, &cells));
    for (size_t i = 0; i < cells.len; i++) {
        axis_cover(&sizes, cells.items[i].size);
        axis_cover(&lifetimes, cells.items[i].lifetime);
        certain += cells.items[i].certain;
        total += cells.items[i].certain + cells.items[i].estimated;
    }
    for (size_t i = 0; i < cells.len; i++) {
        struct heat_cell cell = cells.items[i];
        const struct costs costs = heat_cell_costs(&cell);
        const struct costs errors = sampling_errors(&sampling, &costs);
        cell.size -= sizes.first;
        cell.lifetime -= lifetimes.first;
        TRY(cell_row_vec_push(
            &rows, (struct cell_row){.cell = cell, .error = costs_get(&errors, COST_ALLOCATIONS)}));
    }
    write_axis(view, "sizes", sizes);
    write_axis(view, "lifetimes", lifetimes);
    view_table(view, &TABLE("cells", cell_columns, rows.items, rows.len));
    json_key_u64(view->w, "certain_blocks", certain);
    json_key_u64(view->w, "total_blocks", total);
    return ERR_OK;
}
