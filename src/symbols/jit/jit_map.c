// SPDX-License-Identifier: MIT
#include "symbols/jit/jit_map.h"

#include "base/order.h"
#include "base/search.h"
#include "host/text/utf8.h"
#include "symbols/names/symbol_name.h"

void jit_map_release(struct jit_map *map)
{
    strbuf_release(&map->text);
    jit_code_vec_release(&map->codes);
    map_u64_release(&map->latest);
    u64_vec_release(&map->borders);
    u32_vec_release(&map->owners);
}

static bool is_possible(const struct jit_map *map, uint64_t begin, uint64_t size, uint64_t *out_end)
{
    return map->codes.len < UINT32_MAX / 2 && !__builtin_add_overflow(begin, size, out_end);
}

static MUST_USE enum err add_code(struct jit_map *map, struct jit_code code)
{
    TRY(map_u64_put(&map->latest, code.begin, (uint32_t)map->codes.len));
    return jit_code_vec_push(&map->codes, code);
}

enum err jit_map_add(struct jit_map *map, uint64_t begin, uint64_t size, struct bytes name)
{
    struct jit_code code = {.begin = begin, .name = map->text.len};
    if (!is_possible(map, begin, size, &code.end)) {
        return ERR_OK;
    }
    strbuf_append(&map->text, name.data,
                  utf8_cut((const char *)name.data, name.len, SYMBOL_NAME_MAX));
    strbuf_append_char(&map->text, '\0');
    TRY(strbuf_result(&map->text));
    return add_code(map, code);
}

enum err jit_map_add_move(struct jit_map *map, uint64_t old_begin, uint64_t begin, uint64_t size)
{
    const uint32_t *known = map_u64_find(&map->latest, old_begin);
    struct jit_code code = {.begin = begin};
    if (known == NULL || !is_possible(map, begin, size, &code.end)) {
        return ERR_OK;
    }
    code.name = map->codes.items[*known].name;
    return add_code(map, code);
}

static int compare_borders(const void *left, const void *right)
{
    const uint64_t *a = left;
    const uint64_t *b = right;
    return order_u64(*a, *b);
}

static MUST_USE enum err find_borders(struct jit_map *map)
{
    struct u64_vec *borders = &map->borders;
    u64_vec_clear(borders);
    TRY(u64_vec_reserve(borders, 2 * map->codes.len));
    for (size_t i = 0; i < map->codes.len; i++) {
        borders->items[borders->len++] = map->codes.items[i].begin;
        borders->items[borders->len++] = map->codes.items[i].end;
    }
    u64_vec_sort(borders, compare_borders);
    size_t kept = 0;
    for (size_t i = 0; i < borders->len; i++) {
        if (i == 0 || borders->items[i] != borders->items[kept - 1]) {
            borders->items[kept++] = borders->items[i];
        }
    }
    borders->len = kept;
    return ERR_OK;
}

static size_t border_at_or_after(const struct jit_map *map, uint64_t address)
{
    return FIRST_WHERE(at, map->borders.len, map->borders.items[at] >= address);
}

// Return the first place without an owner from `at` on. `next` leads there in steps, which this
// halves, so that all searches together take little more than a step each.
static size_t find_free(struct u32_vec *next, size_t at)
{
    while (next->items[at] != at) {
        next->items[at] = next->items[next->items[at]];
        at = next->items[at];
    }
    return at;
}

// From the latest code to the oldest, each takes the places that later ones have left.
enum err jit_map_seal(struct jit_map *map)
{
    CLEANUP(u32_vec_release) struct u32_vec next = {0};
    TRY(find_borders(map));
    u32_vec_clear(&map->owners);
    TRY(u32_vec_resize(&map->owners, map->borders.len));
    TRY(u32_vec_resize(&next, map->borders.len + 1));
    for (uint32_t i = 0; i < next.len; i++) {
        next.items[i] = i;
    }
    for (size_t i = map->codes.len; i > 0; i--) {
        const size_t end = border_at_or_after(map, map->codes.items[i - 1].end);
        size_t at = find_free(&next, border_at_or_after(map, map->codes.items[i - 1].begin));
        for (; at < end; at = find_free(&next, at)) {
            map->owners.items[at] = (uint32_t)i;
            next.items[at] = (uint32_t)at + 1;
        }
    }
    return ERR_OK;
}

const char *jit_map_find(const struct jit_map *map, uint64_t pc)
{
    const size_t after = FIRST_WHERE(at, map->owners.len, map->borders.items[at] > pc);
    const uint32_t owner = after > 0 ? map->owners.items[after - 1] : 0;
    return owner > 0 ? map->text.data + map->codes.items[owner - 1].name : NULL;
}
