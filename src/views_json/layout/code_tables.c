// SPDX-License-Identifier: MIT
// code_tables: see code_tables.h.
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
    if (map_u64_get(&tables->function_at, id, out)) {
        return ERR_OK;
    }
    struct named_function function = {.id = id};
    TRY(find_text(&tables->modules, code_union_module(tables->code, id), &function.module));
    uint32_t position = (uint32_t)tables->functions.len;
    TRY(named_function_vec_push(&tables->functions, function));
    TRY(map_u64_put(&tables->function_at, id, position));
    *out = position;
    return ERR_OK;
}

static MUST_USE enum err
add_location(struct code_tables *tables, enum side side, uint32_t location, uint32_t *out)
{
    uint64_t key = (uint64_t)side << 32 | location;
    if (map_u64_get(&tables->location_at, key, out)) {
        return ERR_OK;
    }
    const struct profile *profile = tables->code->profiles[side];
    uint32_t own = profile_location_get(profile, location)->function;
    struct named_location named = {.side = side, .location = location};
    TRY(add_function(tables, tables->code->ids[side].items[own], &named.function));
    TRY(find_text(&tables->files, profile_location_file(profile, location), &named.file));
    uint32_t position = (uint32_t)tables->locations.len;
    TRY(named_location_vec_push(&tables->locations, named));
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
