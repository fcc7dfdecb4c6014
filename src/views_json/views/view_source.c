// SPDX-License-Identifier: MIT
// view_source: the costs of the lines of a source file. In a comparison, lines of equal numbers are
// compared: the page says that they may have moved.
#include <string.h>

#include "base/compiler.h"
#include "base/search.h"
#include "profile/tables/keyed_costs.h"
#include "views_json/views/views.h"

// Find the id of the file in the profile's names. Return false if no name is equal.
static bool find_file(const struct profile *profile, const char *path, uint32_t *out)
{
    return string_table_find(&profile->code.names, path, strlen(path), out) == ERR_OK;
}

// Add the lines of the file that frames of the profile name.
static void add_lines(const struct profile *profile, const char *path, struct u32_vec *lines)
{
    const struct code_location_vec *locations = &profile->code.locations;
    uint32_t file;
    if (!find_file(profile, path, &file)) {
        return;
    }
    for (size_t i = 0; i < locations->len; i++) {
        if (locations->items[i].file == file) {
            u32_vec_add(lines, locations->items[i].line);
        }
    }
}

struct line_row {
    uint32_t line;
    const struct costs *self;
    const struct costs *inclusive;
    const struct costs *old_self;
    const struct costs *old_inclusive;
};

DEFINE_VEC(line_row_vec, struct line_row);

static const struct column line_columns[] = {
    COLUMN(CELL_U32, line_row, line),
    COLUMNS_COMPARED(line_row, self, inclusive),
};

// Find the index in `lines` of each location, REC_NONE for those in other files.
static MUST_USE enum err key_locations(const struct code_location_vec *locations,
                                       uint32_t file,
                                       const struct u32_vec *lines,
                                       struct u32_vec *out)
{
    TRY(u32_vec_resize(out, locations->len));
    for (size_t i = 0; i < locations->len; i++) {
        const struct code_location *location = &locations->items[i];
        out->items[i] =
            location->file == file
                ? (uint32_t)FIRST_WHERE(at, lines->len, lines->items[at] >= location->line)
                : REC_NONE;
    }
    return ERR_OK;
}

// Sum up the costs of each line: by its index in `lines`, which are sorted. No costs are 0.
static MUST_USE enum err sum_lines(const struct selection *selection,
                                   const char *path,
                                   const struct u32_vec *lines,
                                   struct keyed_costs *out)
{
    CLEANUP(call_tree_release) struct call_tree tree = {0};
    CLEANUP(u32_vec_release) struct u32_vec keys = {0};
    CLEANUP(u32_vec_release) struct u32_vec location_keys = {0};
    uint32_t file;
    if (selection == NULL || !find_file(selection->profile, path, &file)) {
        return ERR_OK;
    }
    TRY(call_tree_build(selection, CALL_TREE_BY_LOCATION, false, &tree));
    TRY(key_locations(&selection->profile->code.locations, file, lines, &location_keys));
    TRY(u32_vec_resize(&keys, tree.nodes.len));
    keys.items[0] = REC_NONE;
    for (size_t i = 1; i < tree.nodes.len; i++) {
        keys.items[i] = location_keys.items[tree.nodes.items[i].location];
    }
    TRY(keyed_costs_build(&tree, &keys, lines->len, out));
    return keyed_costs_take_sites(selection, &location_keys, out);
}

static const struct profile *old_profile(const struct view *view)
{
    return view->old_selection != NULL ? view->old_selection->profile : NULL;
}

static bool names_file(const struct profile *profile, const char *path)
{
    const struct code_location_vec *locations = &profile->code.locations;
    uint32_t file;
    bool is_named = false;
    const bool is_known = find_file(profile, path, &file);
    for (size_t i = 0; is_known && !is_named && i < locations->len; i++) {
        is_named = locations->items[i].file == file;
    }
    return is_named;
}

bool view_source_is_named(const struct view *view, const char *path)
{
    const struct profile *old = old_profile(view);
    return names_file(view->profile, path) || (old != NULL && names_file(old, path));
}

enum err view_source_lines(struct view *view, const char *path)
{
    CLEANUP(u32_vec_release) struct u32_vec lines = {0};
    CLEANUP(keyed_costs_release) struct keyed_costs new = {0};
    CLEANUP(keyed_costs_release) struct keyed_costs old = {0};
    CLEANUP(line_row_vec_release) struct line_row_vec rows = {0};
    add_lines(view->profile, path, &lines);
    if (old_profile(view) != NULL) {
        add_lines(old_profile(view), path, &lines);
    }
    u32_vec_sort_once(&lines);
    TRY(sum_lines(view->selection, path, &lines, &new));
    TRY(sum_lines(view->old_selection, path, &lines, &old));
    for (size_t i = 0; i < lines.len; i++) {
        const struct line_row row = {.line = lines.items[i],
                                     .self = keyed_costs_at(&new.self, i),
                                     .inclusive = keyed_costs_at(&new.inclusive, i),
                                     .old_self = keyed_costs_at(&old.self, i),
                                     .old_inclusive = keyed_costs_at(&old.inclusive, i)};
        TRY(line_row_vec_push(&rows, row));
    }
    view_table(view, &TABLE("lines", line_columns, rows.items, rows.len));
    return ERR_OK;
}
