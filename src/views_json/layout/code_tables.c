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
static uint32_t add_text(struct string_table *table, const char *text)
{
    const uint32_t id = string_table_add(table, text);
    return id > 0 ? id - 1 : REC_NONE;
}

uint32_t code_tables_function(struct code_tables *tables, uint32_t id)
{
    if (id == REC_NONE) {
        return REC_NONE;
    }
    const uint32_t at = map_u64_add(&tables->function_at, id, tables->functions.len);
    if (at == tables->functions.len) {
        const char *module = code_union_module(tables->code, id);
        named_function_vec_add(
            &tables->functions,
            (struct named_function){.id = id, .module = add_text(&tables->modules, module)});
    }
    return at;
}

uint32_t code_tables_location(struct code_tables *tables, enum side side, uint32_t location)
{
    if (location == REC_NONE) {
        return REC_NONE;
    }
    const uint64_t key = map_u64_pair(side, location);
    const uint32_t at = map_u64_add(&tables->location_at, key, tables->locations.len);
    if (at == tables->locations.len) {
        const struct profile *profile = tables->code->profiles[side];
        const uint32_t own = profile_function_at(profile, location);
        const uint32_t function = code_tables_function(tables, tables->code->ids[side].items[own]);
        const char *file = profile_location_file(profile, location);
        named_location_vec_add(&tables->locations,
                               (struct named_location){.side = side,
                                                       .location = location,
                                                       .function = function,
                                                       .file = add_text(&tables->files, file)});
    }
    return at;
}
