// SPDX-License-Identifier: MIT
#include "views_json/layout/code_tables.h"

void code_tables_release(struct code_tables *tables)
{
    named_function_vec_release(&tables->functions);
    named_location_vec_release(&tables->locations);
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
    TRY(map_u64_number(&tables->function_at, id, tables->functions.len, out));
    if (*out != tables->functions.len) {
        return ERR_OK;
    }
    struct named_function function = {.id = id};
    TRY(find_text(&tables->modules, code_union_module(tables->code, id), &function.module));
    return named_function_vec_push(&tables->functions, function);
}

static MUST_USE enum err
add_location(struct code_tables *tables, enum side side, uint32_t location, uint32_t *out)
{
    const uint64_t key = map_u64_pair(side, location);
    TRY(map_u64_number(&tables->location_at, key, tables->locations.len, out));
    if (*out != tables->locations.len) {
        return ERR_OK;
    }
    const struct profile *profile = tables->code->profiles[side];
    uint32_t own = profile_location_get(profile, location)->function;
    struct named_location named = {.side = side, .location = location};
    TRY(add_function(tables, tables->code->ids[side].items[own], &named.function));
    TRY(find_text(&tables->files, profile_location_file(profile, location), &named.file));
    return named_location_vec_push(&tables->locations, named);
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
