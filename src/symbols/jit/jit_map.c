// SPDX-License-Identifier: MIT
#include "symbols/jit/jit_map.h"

void jit_map_release(struct jit_map *map)
{
    strbuf_release(&map->text);
    u64_vec_release(&map->names);
    range_index_release(&map->ranges);
    map_u64_release(&map->latest);
}

// Add code whose name is at `place` of the texts. The caller has checked the number of names.
static MUST_USE enum err add(struct jit_map *map, uint64_t begin, uint64_t end, uint64_t place)
{
    const uint32_t number = (uint32_t)map->names.len;
    TRY(range_index_add(&map->ranges, begin, end, number));
    TRY(map_u64_put(&map->latest, begin, number));
    return u64_vec_push(&map->names, place);
}

enum err jit_map_add(struct jit_map *map, uint64_t begin, uint64_t size, struct bytes name)
{
    uint64_t end;
    if (map->names.len >= UINT32_MAX || __builtin_add_overflow(begin, size, &end)) {
        return ERR_OK;
    }
    const uint64_t place = map->text.len;
    strbuf_append(&map->text, name.data, name.len);
    strbuf_append_char(&map->text, '\0');
    TRY(strbuf_result(&map->text));
    return add(map, begin, end, place);
}

enum err jit_map_add_move(struct jit_map *map, uint64_t old_begin, uint64_t begin, uint64_t size)
{
    const uint32_t *known = map_u64_find(&map->latest, old_begin);
    uint64_t end;
    if (known == NULL || map->names.len >= UINT32_MAX ||
        __builtin_add_overflow(begin, size, &end)) {
        return ERR_OK;
    }
    return add(map, begin, end, map->names.items[*known]);
}

enum err jit_map_seal(struct jit_map *map)
{
    return range_index_seal(&map->ranges);
}

const char *jit_map_find(const struct jit_map *map, uint64_t pc)
{
    const struct range *latest = NULL;
    struct range_search search = range_index_search(&map->ranges, pc);
    for (const struct range *range = range_index_next(&map->ranges, &search, pc); range != NULL;
         range = range_index_next(&map->ranges, &search, pc)) {
        if (latest == NULL || range->value > latest->value) {
            latest = range;
        }
    }
    return latest != NULL ? map->text.data + map->names.items[latest->value] : NULL;
}
