// SPDX-License-Identifier: MIT
// api_source: /api/v1/source: a source file with what its lines cost.
#include <string.h>

#include "base/compiler.h"
#include "profile/tables/keyed_costs.h"
#include "server/api/api.h"
#include "server/columns/columns.h"
#include "server/state/source_file.h"

// The lines of one file: each has a key, in ascending order.
struct file_lines {
    uint32_t file;         // id in the profile's names
    struct u32_vec lines;  // by key
    struct u32_vec key_of; // by location; REC_NONE elsewhere
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

// Whether the file is named by any frame, and with which lines.
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

static MUST_USE enum err find_file(struct question *q, struct file_lines *out)
{
    const char *path = request_text(q->request, PARAM_FILE_PATH);
    if (path == NULL) {
        return question_refuse(q, 0, PARAM_FILE_PATH, ERR_INVALID, "file_path: must be given");
    }
    enum err problem = string_table_find(&q->profile->code.names, path, strlen(path), &out->file);
    if (problem == ERR_OK) {
        TRY(find_lines(q->profile, out));
    }
    if (problem != ERR_OK || out->lines.len == 0) {
        return question_refuse(q, 0, PARAM_FILE_PATH, ERR_NOT_FOUND,
                               "file_path: no frame of the recording names this file");
    }
    return ERR_OK;
}

static MUST_USE enum err
write_lines(struct question *q, const struct file_lines *lines, struct json_writer *w)
{
    CLEANUP(call_tree_release) struct call_tree tree = {0};
    CLEANUP(u32_vec_release) struct u32_vec keys = {0};
    CLEANUP(keyed_costs_release) struct keyed_costs costs = {0};
    TRY(call_tree_build(&q->selection, CALL_TREE_TOP_DOWN, CALL_TREE_BY_LOCATION, &tree));
    TRY(call_tree_add_up(&tree));
    TRY(u32_vec_resize(&keys, tree.nodes.len));
    keys.items[0] = REC_NONE;
    for (size_t i = 1; i < tree.nodes.len; i++) {
        keys.items[i] = lines->key_of.items[tree.nodes.items[i].location];
    }
    TRY(keyed_costs_build(&tree, &keys, lines->lines.len, &costs));
    table_begin(w, "lines", lines->lines.len);
    column_begin(w, "line");
    for (size_t i = 0; i < lines->lines.len; i++) {
        json_u64(w, lines->lines.items[i]);
    }
    column_end(w);
    costs_table(w, "self", q->costs, costs.self.items, costs.self.len);
    costs_table(w, "inclusive", q->costs, costs.inclusive.items, costs.inclusive.len);
    table_end(w);
    return ERR_OK;
}

static void write_text(struct question *q, const char *path, struct json_writer *w)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    struct err_info info = {0};
    uint64_t modified_ms = 0;
    bool is_readable = false;
    if (!question_can(q, CAPABILITY_SOURCE)) {
        (void)err_set(&info, ERR_PERMISSION, "the server does not show source files"); // told
    } else {
        is_readable = source_file_read(path, &text, &modified_ms, &info) == ERR_OK;
    }
    uint64_t start_ms = q->profile->recording.meta.start_unix_ns / 1000000;
    json_key_bool(w, "is_readable", is_readable);
    json_key_string(w, "reason", is_readable ? NULL : info.text);
    json_key(w, "text");
    if (is_readable) {
        json_string_bytes(w, strbuf_text(&text), text.len);
    } else {
        json_null(w);
    }
    json_key_bool(w, "is_newer", is_readable && start_ms > 0 && modified_ms > start_ms);
}

enum err api_source(struct question *q, struct json_writer *w)
{
    CLEANUP(file_lines_release) struct file_lines lines = {0};
    TRY(find_file(q, &lines));
    const char *path = request_text(q->request, PARAM_FILE_PATH);
    json_key_string(w, "path", path);
    write_text(q, path, w);
    return write_lines(q, &lines, w);
}
