// SPDX-License-Identifier: MIT
// view: ends an answer: in columns, writes the tables `frames` and `code`. See view.h.
#include "views_json/layout/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "host/containers/memory_end.h"
#include "host/os/file.h"
#include "profile/model/function_name.h"
#include "views_json/layout/view_table.h"

void view_release(struct view *view)
{
    code_tables_release(&view->tables);
    view_frame_vec_release(&view->frames);
    view->tables = (struct code_tables){0};
    view->frames = (struct view_frame_vec){0};
    view->has_code = false;
    view->has_frames = false;
    view->is_full = false;
}

static void write_function_name(struct view *view, const void *row)
{
    const struct named_function *function = row;
    json_value_string(view->w, code_union_name(view->code, function->id));
}

// Write the name without parameters and template arguments; null if that is the whole name.
static void write_short_name(struct view *view, const void *row)
{
    const struct named_function *function = row;
    const char *name = code_union_name(view->code, function->id);
    CLEANUP(strbuf_release) struct strbuf text = {0};
    name_append(&text, name, NAME_NO_TEMPLATES);
    bool is_same = text.failed || strcmp(strbuf_text(&text), name) == 0;
    json_value_string(view->w, is_same ? NULL : strbuf_text(&text));
}

static const struct code_location *location_of(const struct view *view, const void *row)
{
    const struct named_location *named = row;
    return profile_location_get(view->code->profiles[named->side], named->location);
}

static void write_line(struct view *view, const void *row)
{
    json_value_u64(view->w, location_of(view, row)->line);
}

static void write_offset(struct view *view, const void *row)
{
    const struct code_location *location = location_of(view, row);
    char text[24] = "";
    if ((location->flags & CODE_UNKNOWN) != 0) {
        (void)snprintf(text, sizeof(text), "0x%" PRIx64, location->offset); // fits
    }
    json_value_string(view->w, text);
}

static void write_function_wraps(struct view *view, const void *row)
{
    const struct named_function *function = row;
    const struct code_origin origin = view->code->origins.items[function->id];
    const struct code_index *code = &view->code->profiles[origin.side]->code;
    json_value_bool(view->w,
                    view->code->wrappers.items[function->id] != 0 ||
                        (code->functions.items[origin.function].flags & CODE_WRAPPER) != 0);
}

static void write_location_wraps(struct view *view, const void *row)
{
    json_value_bool(view->w, (location_of(view, row)->flags & CODE_WRAPPER) != 0);
}

static const struct column function_columns[] = {
    COLUMN(CELL_U32, named_function, id),
    COLUMN_WRITTEN("name", write_function_name),
    COLUMN_WRITTEN("short", write_short_name),
    COLUMN(CELL_POSITION, named_function, module),
    COLUMN_WRITTEN("wrapper", write_function_wraps),
};

static const struct column location_columns[] = {
    COLUMN(CELL_U32, named_location, function),
    COLUMN(CELL_POSITION, named_location, file),
    COLUMN_WRITTEN("line", write_line),
    COLUMN_WRITTEN("offset", write_offset),
    COLUMN_WRITTEN("wrapper", write_location_wraps),
};

// The path of a module or of a source file.
struct named_path {
    const char *path;
    const char *name;
};

DEFINE_VEC(named_path_vec, struct named_path);

static const struct column module_columns[] = {
    COLUMN(CELL_TEXT, named_path, path),
    COLUMN(CELL_TEXT, named_path, name),
};

static void write_paths(struct view *view,
                        const char *key,
                        const struct string_table *paths,
                        size_t column_count)
{
    CLEANUP(named_path_vec_release) struct named_path_vec rows = {0};
    for (uint32_t id = 1; id < string_table_count(paths); id++) {
        const char *path = string_table_get(paths, id);
        named_path_vec_add(&rows, (struct named_path){path, path_file_name(path)});
    }
    struct table table = TABLE(key, module_columns, rows.items, rows.len);
    table.column_count = column_count;
    view_table(view, &table);
}

static void write_code(struct view *view)
{
    const struct code_tables *tables = &view->tables;
    json_key_object(view->w, "code");
    view_table(view, &TABLE("functions", function_columns, tables->functions.items,
                            tables->functions.len));
    view_table(view, &TABLE("locations", location_columns, tables->locations.items,
                            tables->locations.len));
    write_paths(view, "modules", &tables->modules, 2);
    write_paths(view, "files", &tables->files, 1);
    json_end_object(view->w);
}

static const struct column frame_columns[] = {
    COLUMN(CELL_POSITION, view_frame, location),
    COLUMN(CELL_BOOL, view_frame, inlined),
};

enum err view_end(struct view *view)
{
    const bool is_full = view->is_full;
    if (view->has_frames) {
        view_table(view, &TABLE("frames", frame_columns, view->frames.items, view->frames.len));
    }
    if (view->has_code) {
        write_code(view);
    }
    view_release(view);
    return is_full ? ERR_LIMIT : memory_end_result();
}
