// SPDX-License-Identifier: MIT
#include "views_json/layout/view_table.h"

#include <string.h>

#include "profile/accuracy/sampling.h"
#include "views_json/layout/view_csv.h"

static struct code_tables *tables_of(struct view *view)
{
    view->tables.code = view->code;
    return &view->tables;
}

// The recording of one side; NULL if the view has none.
static const struct recording *recording_of(const struct view *view, enum side side)
{
    if (side == SIDE_OLD) {
        return view->old_selection != NULL ? &view->old_selection->profile->recording : NULL;
    }
    return view->profile != NULL ? &view->profile->recording : NULL;
}

static bool is_sampled(const struct view *view, enum side side)
{
    const struct recording *recording = recording_of(view, side);
    return recording != NULL && sampling_of(recording).bytes != 0;
}

bool view_has_column(const struct view *view, const struct table *table, size_t column)
{
    uint32_t has = table->has | (view->old_selection != NULL ? WHEN_COMPARED : 0) |
                   (is_sampled(view, SIDE_NEW) ? WHEN_SAMPLED : 0) |
                   (is_sampled(view, SIDE_OLD) ? WHEN_OLD_SAMPLED : 0) |
                   (view->layout == VIEW_COLUMNS ? WHEN_COLUMNS : 0);
    uint32_t when = table->columns[column].when;
    return (when & has) == when;
}

static const void *row_at(const struct table *table, size_t row)
{
    return (const char *)table->rows + row * table->row_bytes;
}

static const void *field_at(const struct table *table, const struct column *column, size_t row)
{
    return (const char *)row_at(table, row) + column->offset;
}

static struct costs errors_of(const struct view *view, enum side side, const struct costs *costs)
{
    const struct sampling sampling = sampling_of(recording_of(view, side));
    return sampling_errors(&sampling, costs);
}

const struct costs *view_costs_at(const struct view *view,
                                  const struct table *table,
                                  const struct column *column,
                                  size_t row,
                                  struct costs *errors)
{
    static const struct costs none = {0};
    const bool is_direct = column->kind == CELL_COSTS || column->kind == CELL_ERRORS;
    const void *field = field_at(table, column, row);
    const struct costs *costs = is_direct ? field : *(const struct costs *const *)field;
    costs = costs != NULL ? costs : &none;
    if (column->kind != CELL_ERRORS && column->kind != CELL_ERRORS_AT) {
        return costs;
    }
    *errors = errors_of(view, (column->when & WHEN_OLD_SAMPLED) != 0 ? SIDE_OLD : SIDE_NEW, costs);
    return errors;
}

uint32_t view_unknown(const struct view *view, enum side side)
{
    const struct selection *selection = side == SIDE_OLD ? view->old_selection : view->selection;
    return selection != NULL ? selection->unknown : 0;
}

uint32_t
view_unknown_at(const struct view *view, const struct table *table, const struct column *column)
{
    const bool is_old = (column->when & (WHEN_COMPARED | WHEN_OLD_SAMPLED)) != 0;
    return table->unknown | view_unknown(view, is_old ? SIDE_OLD : SIDE_NEW);
}

static bool is_costs(const struct column *column)
{
    return column->kind == CELL_COSTS || column->kind == CELL_COSTS_AT ||
           column->kind == CELL_ERRORS || column->kind == CELL_ERRORS_AT;
}

static void write_position(struct json_writer *w, uint32_t position)
{
    json_known_u64(w, position, position != REC_NONE);
}

void view_value(struct view *view,
                const struct table *table,
                const struct column *column,
                size_t row)
{
    struct json_writer *w = view->w;
    const void *field = field_at(table, column, row);
    switch (column->kind) {
    case CELL_U64:
        json_value_u64(w, *(const uint64_t *)field);
        break;
    case CELL_U32:
        json_value_u64(w, *(const uint32_t *)field);
        break;
    case CELL_POSITION:
        write_position(w, *(const uint32_t *)field);
        break;
    case CELL_BOOL:
        json_value_bool(w, *(const bool *)field);
        break;
    case CELL_OPTIONAL:
        json_known_u64(w, *(const uint64_t *)field, *(const uint64_t *)field != VALUE_UNKNOWN);
        break;
    case CELL_DOUBLE:
        json_value_double(w, *(const double *)field);
        break;
    case CELL_TEXT:
        json_value_string(w, *(const char *const *)field);
        break;
    case CELL_STRING:
        json_value_string(w, profile_string(view->profile, *(const rec_string *)field));
        break;
    case CELL_WRITE:
        column->write(view, row_at(table, row));
        break;
    case CELL_LOCATION:
    case CELL_FUNCTION:
    case CELL_COSTS:
    case CELL_COSTS_AT:
    case CELL_ERRORS:
    case CELL_ERRORS_AT:
    case CELL_FRAMES:
        break; // not a single value in both layouts
    }
}

// Rows

void view_function(struct view *view, const char *key, uint32_t function)
{
    const struct code_union *code = view->code;
    json_key(view->w, key);
    if (view->layout == VIEW_COLUMNS) {
        view->has_code = true;
        write_position(view->w, code_tables_function(tables_of(view), function));
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
        write_position(view->w, code_tables_location(tables_of(view), place.side, place.location));
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
    if (is_sampled(view, side)) {
        const struct costs errors = errors_of(view, side, costs);
        view_costs(view, key, bits, view_unknown(view, side), &errors);
    }
}

// `place` is a node or an index.
uint32_t frame_list_begin(const struct frame_list *frames)
{
    return frames->tree != NULL ? frames->node : 0;
}

bool frame_list_next(const struct frame_list *frames, uint32_t *place, struct frame_at *out)
{
    if (frames->tree != NULL) {
        const struct call_tree_node *node = &frames->tree->nodes.items[*place];
        if (*place == 0) {
            return false;
        }
        *out = (struct frame_at){node->location, node->is_inlined, node->frame};
        *place = node->parent;
        return true;
    }
    if (*place >= frames->count) {
        return false;
    }
    *out = (struct frame_at){frames->locations[*place], frames->inlined[*place] != 0, REC_NONE};
    (*place)++;
    return true;
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
            write_position(view->w,
                           code_tables_location(tables_of(view), SIDE_NEW, frame.location));
        }
    }
    json_end_array(view->w);
}

static void
write_member(struct view *view, const struct table *table, const struct column *column, size_t row)
{
    const void *field = field_at(table, column, row);
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
    while (frame_list_next(frames, &place, &at)) {
        const struct view_frame frame = {
            .location = code_tables_location(tables_of(view), SIDE_NEW, at.location),
            .inlined = at.is_inlined};
        if (view_frame_vec_push(&view->frames, frame) != ERR_OK) {
            view->failed = true;
        }
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
        add_frames(view, field_at(table, column, row));
    }
    json_end_array(view->w);
    json_key_array(view->w, "frame_count");
    for (size_t row = 0; row < table->count; row++) {
        json_value_u64(view->w, count_frames(field_at(table, column, row)));
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
        const void *field = field_at(table, column, row);
        const struct place *place = field;
        bool is_function = column->kind == CELL_FUNCTION;
        uint32_t position =
            is_function ? code_tables_function(tables_of(view), *(const uint32_t *)field)
                        : code_tables_location(tables_of(view), place->side, place->location);
        write_position(view->w, position);
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
