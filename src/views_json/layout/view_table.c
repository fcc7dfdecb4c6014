// SPDX-License-Identifier: MIT
#include "views_json/layout/view_table.h"

#include <string.h>

#include "views_json/layout/view_csv.h"

static struct code_tables *tables_of(struct view *view)
{
    view->tables.code = view->code;
    return &view->tables;
}

static bool is_costs(const struct column *column)
{
    return column->kind == CELL_COSTS || column->kind == CELL_COSTS_AT ||
           column->kind == CELL_ERRORS || column->kind == CELL_ERRORS_AT;
}

// Rows

void view_function(struct view *view, const char *key, uint32_t function)
{
    const struct code_union *code = view->code;
    json_key(view->w, key);
    if (view->layout == VIEW_COLUMNS) {
        view->has_code = true;
        view_position(view->w, code_tables_function(tables_of(view), function));
        return;
    }
    bool is_known = function != REC_NONE;
    json_value_string(view->w, is_known ? code_union_name(code, function) : NULL);
    if (strcmp(key, "function") == 0) {
        json_key_string(view->w, "module", is_known ? code_union_module(code, function) : NULL);
    }
}

void view_location(struct view *view, struct place place)
{
    if (view->layout == VIEW_COLUMNS) {
        view->has_code = true;
        json_key(view->w, "location");
        view_position(view->w, code_tables_location(tables_of(view), place.side, place.location));
        return;
    }
    struct json_writer *w = view->w;
    const struct profile *profile = view->code->profiles[place.side];
    const uint32_t location = place.location;
    bool is_known = location != REC_NONE;
    json_key_string(w, "function", is_known ? profile_location_function(profile, location) : "");
    json_key_string(w, "file", is_known ? profile_location_file(profile, location) : "");
    json_key_u64(w, "line", is_known ? profile_location_get(profile, location)->line : 0);
    json_key_string(w, "module", is_known ? profile_location_module(profile, location) : "");
}

void view_costs(
    struct view *view, const char *key, uint64_t bits, uint32_t unknown, const struct costs *costs)
{
    json_key_object(view->w, key);
    for (int cost = 0; cost < COST_COUNT; cost++) {
        if ((bits >> cost & 1) != 0) {
            json_key_known_u64(view->w, cost_get_info((enum cost)cost)->key, costs->values[cost],
                               (unknown >> cost & 1) == 0);
        }
    }
    json_end_object(view->w);
}

void view_errors(
    struct view *view, enum side side, const char *key, uint64_t bits, const struct costs *costs)
{
    if (view_is_sampled(view, side)) {
        const struct costs errors = view_errors_of(view, side, costs);
        view_costs(view, key, bits, view_unknown(view, side), &errors);
    }
}

static void write_frame(struct view *view, const struct frame_at *frame)
{
    json_begin_object(view->w);
    view_location(view, (struct place){SIDE_NEW, frame->location});
    json_key_bool(view->w, "inlined", frame->is_inlined);
    if (view->has_offsets && frame->frame != REC_NONE) {
        json_key_u64(view->w, "offset", view->profile->recording.frames[frame->frame].offset);
    }
    json_end_object(view->w);
}

void view_frames(struct view *view, const struct frame_list *frames)
{
    uint32_t place = frame_list_begin(frames);
    struct frame_at frame;
    json_key_array(view->w, "frames");
    while (frame_list_next(frames, &place, &frame)) {
        if (view->layout == VIEW_ROWS) {
            write_frame(view, &frame);
        } else {
            view->has_code = true;
            view_position(view->w, code_tables_location(tables_of(view), SIDE_NEW, frame.location));
        }
    }
    json_end_array(view->w);
}

static void
write_member(struct view *view, const struct table *table, const struct column *column, size_t row)
{
    const void *field = view_field_at(table, column, row);
    if (column->kind == CELL_LOCATION) {
        view_location(view, *(const struct place *)field);
    } else if (column->kind == CELL_FUNCTION) {
        view_function(view, column->key, *(const uint32_t *)field);
    } else if (is_costs(column)) {
        struct costs errors;
        view_costs(view, column->key, view->costs, view_unknown_at(view, table, column),
                   view_costs_at(view, table, column, row, &errors));
    } else if (column->kind == CELL_FRAMES) {
        view_frames(view, field);
    } else {
        json_key(view->w, column->key);
        view_value(view, table, column, row);
    }
}

void view_row(struct view *view, const struct table *table, size_t row)
{
    for (size_t c = 0; c < table->column_count; c++) {
        if (view_has_column(view, table, c)) {
            write_member(view, table, &table->columns[c], row);
        }
    }
}

static void write_rows(struct view *view, const struct table *table)
{
    json_key_array(view->w, table->key);
    for (size_t row = 0; row < table->count; row++) {
        json_begin_object(view->w);
        view_row(view, table, row);
        json_end_object(view->w);
    }
    json_end_array(view->w);
}

// Columns

static void
write_costs_columns(struct view *view, const struct table *table, const struct column *column)
{
    const uint32_t unknown = view_unknown_at(view, table, column);
    json_begin_object(view->w);
    for (int cost = 0; cost < COST_COUNT; cost++) {
        if ((view->costs >> cost & 1) == 0) {
            continue;
        }
        const bool is_known = (unknown >> cost & 1) == 0;
        json_key_array(view->w, cost_get_info((enum cost)cost)->key);
        for (size_t row = 0; row < table->count; row++) {
            struct costs errors;
            const struct costs *costs = view_costs_at(view, table, column, row, &errors);
            json_known_u64(view->w, costs->values[cost], is_known);
        }
        json_end_array(view->w);
    }
    json_end_object(view->w);
}

static void add_frames(struct view *view, const struct frame_list *frames)
{
    uint32_t place = frame_list_begin(frames);
    struct frame_at at;
    while (!view->is_full && frame_list_next(frames, &place, &at)) {
        view->is_full = view->frames.len >= VIEW_FRAMES_MAX;
        const struct view_frame frame = {
            .location = code_tables_location(tables_of(view), SIDE_NEW, at.location),
            .inlined = at.is_inlined};
        view_frame_vec_add(&view->frames, frame);
    }
}

static uint64_t count_frames(const struct frame_list *frames)
{
    uint32_t place = frame_list_begin(frames);
    struct frame_at frame;
    uint64_t count = 0;
    while (frame_list_next(frames, &place, &frame)) {
        count++;
    }
    return count;
}

static void
write_frames_columns(struct view *view, const struct table *table, const struct column *column)
{
    view->has_code = true;
    view->has_frames = true;
    json_key_array(view->w, "frame_first");
    for (size_t row = 0; row < table->count; row++) {
        json_value_u64(view->w, view->frames.len);
        add_frames(view, view_field_at(table, column, row));
    }
    json_end_array(view->w);
    json_key_array(view->w, "frame_count");
    for (size_t row = 0; row < table->count; row++) {
        json_value_u64(view->w, count_frames(view_field_at(table, column, row)));
    }
    json_end_array(view->w);
}

// Write a position in `code` for each row.
static void
write_position_column(struct view *view, const struct table *table, const struct column *column)
{
    view->has_code = true;
    json_begin_array(view->w);
    for (size_t row = 0; row < table->count; row++) {
        const void *field = view_field_at(table, column, row);
        const struct place *place = field;
        bool is_function = column->kind == CELL_FUNCTION;
        uint32_t position =
            is_function ? code_tables_function(tables_of(view), *(const uint32_t *)field)
                        : code_tables_location(tables_of(view), place->side, place->location);
        view_position(view->w, position);
    }
    json_end_array(view->w);
}

static void write_column(struct view *view, const struct table *table, const struct column *column)
{
    if (column->kind == CELL_FRAMES) {
        write_frames_columns(view, table, column);
        return;
    }
    json_key(view->w, column->kind == CELL_LOCATION ? "location" : column->key);
    if (is_costs(column)) {
        write_costs_columns(view, table, column);
        return;
    }
    if (column->kind == CELL_LOCATION || column->kind == CELL_FUNCTION) {
        write_position_column(view, table, column);
        return;
    }
    json_begin_array(view->w);
    for (size_t row = 0; row < table->count; row++) {
        view_value(view, table, column, row);
    }
    json_end_array(view->w);
}

static void write_columns(struct view *view, const struct table *table)
{
    json_key_object(view->w, table->key);
    json_key_u64(view->w, "count", table->count);
    for (size_t c = 0; c < table->column_count; c++) {
        if (view_has_column(view, table, c)) {
            write_column(view, table, &table->columns[c]);
        }
    }
    json_end_object(view->w);
}

void view_table(struct view *view, const struct table *table)
{
    if (view->csv != NULL) {
        view_csv_table(view, table);
    } else if (view->layout == VIEW_ROWS) {
        write_rows(view, table);
    } else {
        write_columns(view, table);
    }
}

void view_numbers(struct view *view, const char *key, const uint64_t *items, size_t count)
{
    json_key_array(view->w, key);
    for (size_t i = 0; i < count; i++) {
        json_value_u64(view->w, items[i]);
    }
    json_end_array(view->w);
}
