// SPDX-License-Identifier: MIT
#include "views_json/layout/view_csv.h"

#include <inttypes.h>
#include <string.h>

#include "base/compiler.h"
#include "views_json/layout/csv_cell.h"

static bool drop_text(void *context, const char *data, size_t len)
{
    (void)context; // all three: dropped
    (void)data;
    (void)len;
    return true;
}

void view_csv_drop(struct json_writer *w)
{
    json_to_sink(w, drop_text, NULL, JSON_COMPACT);
}

void view_csv_tag(struct view *view, size_t tag, const char *value)
{
    if (view->csv != NULL) {
        view->csv->tags[tag].value = value;
    }
}

bool view_nests(const struct view *view)
{
    return view->layout == VIEW_ROWS && view->csv == NULL;
}

// One field of a row.
struct cell {
    const struct table *table;
    const struct column *column;
    size_t row;
};

// A line of the file that is being written.
struct line {
    FILE *out;
    bool has_cell;
};

static void add_text(struct line *line, const char *text)
{
    (void)fputs(line->has_cell ? "," : "", line->out); // the owner of the stream checks it
    csv_write_text(line->out, text);
    line->has_cell = true;
}

// A number needs no quotes, and a negative one no guard.
static void add_number(struct line *line, const char *digits)
{
    (void)fprintf(line->out, "%s%s", line->has_cell ? "," : "", digits); // as above
    line->has_cell = true;
}

static void add_count(struct line *line, uint64_t number)
{
    (void)fprintf(line->out, "%s%" PRIu64, line->has_cell ? "," : "", number); // as above
    line->has_cell = true;
}

static bool names_module(const struct column *column)
{
    return strcmp(column->key, "function") == 0;
}

// A cell whose JSON is one value, so that both are equal.
static void add_value(struct view *view, const struct cell *cell, struct line *line)
{
    const enum cell_kind kind = cell->column->kind;
    const bool is_text = kind == CELL_TEXT || kind == CELL_STRING || kind == CELL_WRITE;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    struct json_writer *const usual = view->w;
    struct json_writer bare;
    json_to_strbuf(&bare, &text, JSON_BARE);
    view->w = &bare;
    view_value(view, cell->table, cell->column, cell->row);
    view->w = usual;
    (void)!json_finish(&bare); // a lack of memory is noted for the answer
    (is_text ? add_text : add_number)(line, strbuf_text(&text));
}

static void name_value(const struct view *view, const struct column *column, struct line *line)
{
    (void)view;
    add_text(line, column->key);
}

static void add_location(struct view *view, const struct cell *cell, struct line *line)
{
    const struct place place =
        *(const struct place *)view_field_at(cell->table, cell->column, cell->row);
    const struct profile *profile = view->code->profiles[place.side];
    const bool is_known = place.location != REC_NONE;
    add_text(line, is_known ? profile_location_function(profile, place.location) : "");
    add_text(line, is_known ? profile_location_file(profile, place.location) : "");
    add_count(line, is_known ? profile_location_get(profile, place.location)->line : 0);
    add_text(line, is_known ? profile_location_module(profile, place.location) : "");
}

static void name_location(const struct view *view, const struct column *column, struct line *line)
{
    (void)view;
    (void)column;
    add_text(line, "function");
    add_text(line, "file");
    add_text(line, "line");
    add_text(line, "module");
}

static void add_function(struct view *view, const struct cell *cell, struct line *line)
{
    const uint32_t function =
        *(const uint32_t *)view_field_at(cell->table, cell->column, cell->row);
    const bool is_known = function != REC_NONE;
    add_text(line, is_known ? code_union_name(view->code, function) : "");
    if (names_module(cell->column)) {
        add_text(line, is_known ? code_union_module(view->code, function) : "");
    }
}

static void name_function(const struct view *view, const struct column *column, struct line *line)
{
    (void)view;
    add_text(line, column->key);
    if (names_module(column)) {
        add_text(line, "module");
    }
}

static void add_frames(struct view *view, const struct cell *cell, struct line *line)
{
    const struct frame_list *frames = view_field_at(cell->table, cell->column, cell->row);
    CLEANUP(strbuf_release) struct strbuf text = {0};
    uint32_t place = frame_list_begin(frames);
    struct frame_at frame;
    while (frame_list_next(frames, &place, &frame)) {
        strbuf_append_text(&text, text.len > 0 ? ";" : "");
        const size_t at = text.len;
        strbuf_append_text(&text, frame.location != REC_NONE
                                      ? profile_location_function(view->profile, frame.location)
                                      : "");
        for (size_t i = at; i < text.len; i++) {
            if (text.data[i] == ';') {
                text.data[i] = ':';
            }
        }
    }
    add_text(line, strbuf_text(&text));
}

static void add_costs(struct view *view, const struct cell *cell, struct line *line)
{
    struct costs errors;
    const struct costs *costs = view_costs_at(view, cell->table, cell->column, cell->row, &errors);
    const uint32_t unknown = view_unknown_at(view, cell->table, cell->column);
    for (int cost = 0; cost < COST_COUNT; cost++) {
        if ((view->costs >> cost & 1) == 0) {
            continue;
        }
        if ((unknown >> cost & 1) != 0) {
            add_number(line, ""); // null
        } else {
            add_count(line, costs->values[cost]);
        }
    }
}

static void name_costs(const struct view *view, const struct column *column, struct line *line)
{
    CLEANUP(strbuf_release) struct strbuf name = {0};
    const bool is_plain = strcmp(column->key, "costs") == 0;
    const size_t stem = strcmp(column->key, "old_costs") == 0 ? strlen("old") : strlen(column->key);
    for (int cost = 0; cost < COST_COUNT; cost++) {
        if ((view->costs >> cost & 1) != 0) {
            strbuf_clear(&name);
            strbuf_append(&name, column->key, is_plain ? 0 : stem);
            strbuf_append_text(&name, is_plain ? "" : "_");
            strbuf_append_text(&name, cost_get_info((enum cost)cost)->key);
            add_text(line, strbuf_text(&name));
        }
    }
}

// The kinds that are not one value: the columns of a field, and their cells.
static const struct csv_kind {
    void (*name)(const struct view *view, const struct column *column, struct line *line);
    void (*add)(struct view *view, const struct cell *cell, struct line *line);
} csv_kinds[CELL_WRITE + 1] = {
    [CELL_LOCATION] = {name_location, add_location},
    [CELL_FUNCTION] = {name_function, add_function},
    [CELL_COSTS] = {name_costs, add_costs},
    [CELL_COSTS_AT] = {name_costs, add_costs},
    [CELL_ERRORS] = {name_costs, add_costs},
    [CELL_ERRORS_AT] = {name_costs, add_costs},
    [CELL_FRAMES] = {name_value, add_frames},
};

static struct csv_kind kind_of(const struct column *column)
{
    const struct csv_kind *kind = &csv_kinds[column->kind];
    return kind->add != NULL ? *kind : (struct csv_kind){name_value, add_value};
}

static void
add_tags(const struct view_csv *csv, const struct table *table, bool is_header, struct line *line)
{
    for (size_t i = 0; i < CSV_TAGS_MAX && csv->tags[i].name != NULL; i++) {
        const char *value = csv->tags[i].value != NULL ? csv->tags[i].value : table->key;
        add_text(line, is_header ? csv->tags[i].name : value);
    }
}

static bool is_wanted(const struct view_csv *csv, const char *key)
{
    for (size_t i = 0; i < CSV_KEYS_MAX && csv->keys[i] != NULL; i++) {
        if (strcmp(csv->keys[i], key) == 0) {
            return true;
        }
    }
    return false;
}

// Write the header, or the row at `row`.
static void add_line(struct view *view, const struct table *table, bool is_header, size_t row)
{
    struct line line = {.out = view->csv->out};
    add_tags(view->csv, table, is_header, &line);
    for (size_t c = 0; c < table->column_count; c++) {
        if (!view_has_column(view, table, c)) {
            continue;
        }
        const struct cell cell = {table, &table->columns[c], row};
        const struct csv_kind kind = kind_of(cell.column);
        if (is_header) {
            kind.name(view, cell.column, &line);
        } else {
            kind.add(view, &cell, &line);
        }
    }
    (void)fputs(CSV_LINE_END, line.out);
}

void view_csv_table(struct view *view, const struct table *table)
{
    if (!is_wanted(view->csv, table->key)) {
        return;
    }
    if (!view->csv->has_header) {
        add_line(view, table, true, 0);
        view->csv->has_header = true;
    }
    for (size_t row = 0; row < table->count; row++) {
        add_line(view, table, false, row);
    }
}
