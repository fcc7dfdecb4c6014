// SPDX-License-Identifier: MIT
// view_source: the costs of the lines of a source file.
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "profile/tables/keyed_costs.h"
#include "views_json/views/views.h"

// The lines of one file. Each has a key, in ascending order.
struct file_lines {
    uint32_t file;         // id in the profile's names
    struct u32_vec lines;  // by key
    struct u32_vec key_of; // by location; REC_NONE in other files
};

static void file_lines_release(struct file_lines *lines)
{
    u32_vec_release(&lines->lines);
    u32_vec_release(&lines->key_of);
}

static int compare_lines(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

// List the lines of the file that frames name; none if no frame names it.
static MUST_USE enum err find_lines(const struct profile *profile, struct file_lines *out)
{
    const struct code_location_vec *locations = &profile->code.locations;
    struct u32_vec *lines = &out->lines;
    TRY(u32_vec_resize(&out->key_of, locations->len));
    for (size_t i = 0; i < locations->len; i++) {
        if (locations->items[i].file == out->file) {
            TRY(u32_vec_push(lines, locations->items[i].line));
        }
    }
    if (lines->len > 1) {
        qsort(lines->items, lines->len, sizeof(lines->items[0]), compare_lines);
    }
    size_t kept = 0;
    for (size_t i = 0; i < lines->len; i++) {
        if (kept == 0 || lines->items[i] != lines->items[kept - 1]) {
            lines->items[kept++] = lines->items[i];
        }
    }
    lines->len = kept;
    for (size_t i = 0; i < locations->len; i++) {
        out->key_of.items[i] = REC_NONE;
        if (locations->items[i].file == out->file) {
            const uint32_t *place = bsearch(&locations->items[i].line, lines->items, kept,
                                            sizeof(lines->items[0]), compare_lines);
            out->key_of.items[i] = (uint32_t)(place - lines->items);
        }
    }
    return ERR_OK;
}

struct line_row {
    uint32_t line;
    const struct costs *self;
    const struct costs *inclusive;
};

DEFINE_VEC(line_row_vec, struct line_row);

static const struct column line_columns[] = {
    COLUMN(CELL_U32, line_row, line),
    COLUMN(CELL_COSTS_AT, line_row, self),
    COLUMN(CELL_COSTS_AT, line_row, inclusive),
};

static MUST_USE enum err write_lines(struct view *view, const struct file_lines *lines)
{
    CLEANUP(call_tree_release) struct call_tree tree = {0};
    CLEANUP(u32_vec_release) struct u32_vec keys = {0};
    CLEANUP(keyed_costs_release) struct keyed_costs costs = {0};
    CLEANUP(line_row_vec_release) struct line_row_vec rows = {0};
    TRY(call_tree_build(view->selection, CALL_TREE_TOP_DOWN, CALL_TREE_BY_LOCATION, &tree));
    TRY(call_tree_add_up(&tree));
    TRY(u32_vec_resize(&keys, tree.nodes.len));
    keys.items[0] = REC_NONE;
    for (size_t i = 1; i < tree.nodes.len; i++) {
        keys.items[i] = lines->key_of.items[tree.nodes.items[i].location];
    }
    TRY(keyed_costs_build(&tree, &keys, lines->lines.len, &costs));
    for (size_t i = 0; i < lines->lines.len; i++) {
        const struct line_row row = {.line = lines->lines.items[i],
                                     .self = &costs.self.items[i],
                                     .inclusive = &costs.inclusive.items[i]};
        TRY(line_row_vec_push(&rows, row));
    }
    view_table(view, &TABLE("lines", line_columns, rows.items, rows.len));
    return ERR_OK;
}

bool view_source_is_named(const struct view *view, const char *path)
{
    uint32_t file;
    const struct code_location_vec *locations = &view->profile->code.locations;
    if (string_table_find(&view->profile->code.names, path, strlen(path), &file) != ERR_OK) {
        return false;
    }
    for (size_t i = 0; i < locations->len; i++) {
        if (locations->items[i].file == file) {
            return true;
        }
    }
    return false;
}

enum err view_source_lines(struct view *view, const char *path)
{
    CLEANUP(file_lines_release) struct file_lines lines = {0};
    TRY(string_table_find(&view->profile->code.names, path, strlen(path), &lines.file));
    TRY(find_lines(view->profile, &lines));
    return write_lines(view, &lines);
}
