// SPDX-License-Identifier: MIT
// code_tables: see code_tables.h.
#include "server/columns/code_tables.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "profile/model/function_name.h"
#include "server/columns/columns.h"

void code_tables_release(struct code_tables *tables)
{
    told_function_vec_release(&tables->functions);
    told_location_vec_release(&tables->locations);
    string_table_release(&tables->files);
    string_table_release(&tables->modules);
    map_u64_release(&tables->function_at);
    map_u64_release(&tables->location_at);
}

// The position of a text, REC_NONE for "".
static MUST_USE enum err find_text(struct string_table *table, const char *text, uint32_t *out)
{
    uint32_t id;
    TRY(string_table_intern_text(table, text, &id));
    *out = id > 0 ? id - 1 : REC_NONE;
    return ERR_OK;
}

static MUST_USE enum err add_function(struct code_tables *tables, uint32_t id, uint32_t *out)
{
    const uint32_t *known = map_u64_find(&tables->function_at, id);
    if (known != NULL) {
        *out = *known;
        return ERR_OK;
    }
    struct told_function function = {.id = id};
    TRY(find_text(&tables->modules, code_union_module(tables->code, id), &function.module));
    uint32_t position = (uint32_t)tables->functions.len;
    TRY(told_function_vec_push(&tables->functions, function));
    TRY(map_u64_put(&tables->function_at, id, position));
    *out = position;
    return ERR_OK;
}

static MUST_USE enum err
add_location(struct code_tables *tables, enum side side, uint32_t location, uint32_t *out)
{
    uint64_t key = (uint64_t)side << 32 | location;
    const uint32_t *known = map_u64_find(&tables->location_at, key);
    if (known != NULL) {
        *out = *known;
        return ERR_OK;
    }
    const struct profile *profile = tables->code->profiles[side];
    uint32_t own = profile_location_get(profile, location)->function;
    struct told_location told = {.side = side, .location = location};
    TRY(add_function(tables, tables->code->ids[side].items[own], &told.function));
    TRY(find_text(&tables->files, profile_location_file(profile, location), &told.file));
    uint32_t position = (uint32_t)tables->locations.len;
    TRY(told_location_vec_push(&tables->locations, told));
    TRY(map_u64_put(&tables->location_at, key, position));
    *out = position;
    return ERR_OK;
}

uint32_t code_tables_function(struct code_tables *tables, uint32_t id)
{
    uint32_t position = REC_NONE;
    if (id != REC_NONE && add_function(tables, id, &position) != ERR_OK) {
        tables->failed = true;
    }
    return position;
}

uint32_t code_tables_location(struct code_tables *tables, enum side side, uint32_t location)
{
    uint32_t position = REC_NONE;
    if (location != REC_NONE && add_location(tables, side, location, &position) != ERR_OK) {
        tables->failed = true;
    }
    return position;
}

// The name without parameters and template arguments; null if nothing was left out.
static void write_short_name(struct json_writer *w, const char *name, struct strbuf *scratch)
{
    strbuf_clear(scratch);
    name_append(scratch, name, NAME_NO_TEMPLATES);
    bool is_same = scratch->failed || strcmp(strbuf_text(scratch), name) == 0;
    json_string(w, is_same ? NULL : strbuf_text(scratch));
}

static void write_functions(const struct code_tables *tables, struct json_writer *w)
{
    const struct told_function_vec *functions = &tables->functions;
    CLEANUP(strbuf_release) struct strbuf scratch = {0};
    table_begin(w, "functions", functions->len);
    column_begin(w, "id");
    for (size_t i = 0; i < functions->len; i++) {
        json_u64(w, functions->items[i].id);
    }
    column_end(w);
    column_begin(w, "name");
    for (size_t i = 0; i < functions->len; i++) {
        json_string(w, code_union_name(tables->code, functions->items[i].id));
    }
    column_end(w);
    column_begin(w, "short");
    for (size_t i = 0; i < functions->len; i++) {
        write_short_name(w, code_union_name(tables->code, functions->items[i].id), &scratch);
    }
    column_end(w);
    column_begin(w, "module");
    for (size_t i = 0; i < functions->len; i++) {
        json_position(w, functions->items[i].module);
    }
    column_end(w);
    table_end(w);
}

static const struct code_location *get_location(const struct code_tables *tables, size_t position)
{
    struct told_location told = tables->locations.items[position];
    return profile_location_get(tables->code->profiles[told.side], told.location);
}

static void write_offset(struct json_writer *w, const struct code_location *location)
{
    char text[24] = "";
    if ((location->flags & CODE_UNKNOWN) != 0) {
        (void)snprintf(text, sizeof(text), "0x%" PRIx64, location->offset); // fits
    }
    json_string(w, text);
}

static void write_locations(const struct code_tables *tables, struct json_writer *w)
{
    const struct told_location_vec *locations = &tables->locations;
    table_begin(w, "locations", locations->len);
    column_begin(w, "function");
    for (size_t i = 0; i < locations->len; i++) {
        json_u64(w, locations->items[i].function);
    }
    column_end(w);
    column_begin(w, "file");
    for (size_t i = 0; i < locations->len; i++) {
        json_position(w, locations->items[i].file);
    }
    column_end(w);
    column_begin(w, "line");
    for (size_t i = 0; i < locations->len; i++) {
        json_u64(w, get_location(tables, i)->line);
    }
    column_end(w);
    column_begin(w, "offset");
    for (size_t i = 0; i < locations->len; i++) {
        write_offset(w, get_location(tables, i));
    }
    column_end(w);
    table_end(w);
}

static void write_texts(struct json_writer *w,
                        const char *column,
                        const struct string_table *texts,
                        const char *(*form)(const char *text))
{
    column_begin(w, column);
    for (uint32_t id = 1; id < string_table_count(texts); id++) {
        const char *text = string_table_get(texts, id);
        json_string(w, form != NULL ? form(text) : text);
    }
    column_end(w);
}

enum err code_tables_write(struct code_tables *tables, struct json_writer *w)
{
    if (tables->failed) {
        return ERR_NO_MEMORY;
    }
    json_key(w, "code");
    json_begin_object(w);
    write_functions(tables, w);
    write_locations(tables, w);
    table_begin(w, "modules", string_table_count(&tables->modules) - 1);
    write_texts(w, "path", &tables->modules, NULL);
    write_texts(w, "name", &tables->modules, path_file_name);
    table_end(w);
    table_begin(w, "files", string_table_count(&tables->files) - 1);
    write_texts(w, "path", &tables->files, NULL);
    table_end(w);
    json_end_object(w);
    return ERR_OK;
}
