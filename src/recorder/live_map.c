// SPDX-License-Identifier: MIT
// live_map: see the header. Here: how blocks settle.
#include "recorder/live_map.h"

#include <stdlib.h>

void live_map_init(struct live_map *map, uint64_t seed)
{
    *map = (struct live_map){0};
    settled_map_init(&map->settled, seed);
}

void live_map_release(struct live_map *map)
{
    settled_map_release(&map->settled);
    free(map->young);
    *map = (struct live_map){0};
}

static void count_settled(struct live_map *map, uint64_t address)
{
    uint8_t *counter = live_map_counter(map, address);
    *counter = (uint8_t)(*counter + (*counter != UINT8_MAX));
}

static enum err settle(struct live_map *map, uint64_t address, const struct live_block *block)
{
    TRY(settled_map_add(&map->settled, address, block));
    count_settled(map, address);
    return ERR_OK;
}

static enum err young_begin(struct live_map *map)
{
    const size_t young_bytes = YOUNG_PLACES * sizeof(struct young_block);
    void *memory = calloc(1, young_bytes + SETTLED_COUNTERS);
    if (memory == NULL) {
        return ERR_NO_MEMORY;
    }
    map->young = memory;
    map->counters = (uint8_t *)memory + young_bytes;
    struct settled_map_position position = {0};
    uint64_t address;
    struct live_block block;
    while (settled_map_next(&map->settled, &position, &address, &block)) {
        count_settled(map, address);
    }
    return ERR_OK;
}

static enum err young_end(struct live_map *map)
{
    for (uint32_t i = 0; i < YOUNG_PLACES; i++) {
        struct young_block *young = map->young + i;
        if (young->address != 0) {
            TRY(settle(map, young->address, &young->block));
            young->address = 0;
        }
    }
    free(map->young);
    map->young = NULL;
    map->counters = NULL;
    return ERR_OK;
}

enum err
live_map_add_settled(struct live_map *map, uint64_t address, const struct live_block *block)
{
    if (map->young == NULL && map->settled.live_count <= SETTLED_FEW) {
        TRY(young_begin(map));
    } else if (map->young != NULL && map->settled.live_count >= SETTLED_MANY) {
        TRY(young_end(map));
    }
    if (map->young == NULL) {
        TRY(settled_map_add(&map->settled, address, block));
        map->live_count++;
        return ERR_OK;
    }
    struct young_block *place = live_map_place(map, address);
    const bool may_be_settled = *live_map_counter(map, address) != 0;
    // The older block of this address, or another one whose place this one takes, settles.
    if (place->address != 0 && (place->address == address || !may_be_settled)) {
        TRY(settle(map, place->address, &place->block));
        place->address = 0;
    }
    if (*live_map_counter(map, address) != 0) {
        TRY(settle(map, address, block));
    } else {
        *place = (struct young_block){.address = address, .block = *block};
    }
    map->live_count++;
    return ERR_OK;
}

bool live_map_take_settled(struct live_map *map, uint64_t address, struct live_block *out)
{
    if (!settled_map_take(&map->settled, address, out)) {
        return false;
    }
    if (map->young != NULL) {
        uint8_t *counter = live_map_counter(map, address);
        *counter = (uint8_t)(*counter - (*counter != UINT8_MAX)); // one that was full stays so
    }
    map->live_count--;
    return true;
}

static const struct young_block *find_young(const struct live_map *map, uint64_t address)
{
    const struct young_block *place = map->young != NULL ? live_map_place(map, address) : NULL;
    return place != NULL && place->address == address && address != 0 ? place : NULL;
}

bool live_map_find(struct live_map *map, uint64_t address, struct live_block *out)
{
    const struct young_block *young = find_young(map, address);
    if (young == NULL) {
        return settled_map_find(&map->settled, address, out);
    }
    *out = young->block;
    return true;
}

bool live_map_holds(struct live_map *map, uint64_t address, const struct live_block *block)
{
    const struct young_block *young = find_young(map, address);
    return young != NULL ? live_block_is_same(&young->block, block)
                         : settled_map_holds(&map->settled, address, block);
}

uint64_t live_map_bytes(const struct live_map *map)
{
    return settled_map_bytes(&map->settled);
}

bool live_map_next(const struct live_map *map,
                   struct live_map_position *position,
                   uint64_t *address,
                   struct live_block *block)
{
    while (map->young != NULL && position->young < YOUNG_PLACES) {
        const struct young_block *young = map->young + position->young++;
        if (young->address != 0) {
            *address = young->address;
            *block = young->block;
            return true;
        }
    }
    return settled_map_next(&map->settled, &position->settled, address, block);
}

bool live_map_check(struct live_map *map)
{
    uint64_t young_count = 0;
    for (uint32_t i = 0; map->young != NULL && i < YOUNG_PLACES; i++) {
        const struct young_block *young = map->young + i;
        struct live_block settled;
        if (young->address == 0) {
            continue;
        }
        young_count++;
        if (find_young(map, young->address) != young ||
            settled_map_find(&map->settled, young->address, &settled)) {
            return false;
        }
    }
    return young_count + map->settled.live_count == map->live_count &&
           settled_map_check(&map->settled);
}
