// SPDX-License-Identifier: MIT
// live_map: see the header. This file moves blocks between `young` and `settled`.
#include "aggregate/live_blocks/live_map.h"

#include <stdlib.h>
#include <string.h>

enum {
    LOOK_ASKED = 2048, // the young table is checked after so many lookups
    PAUSE_EVENTS = 65536,
    SETTLE_AHEAD = 16, // blocks whose places are prefetched
};

void live_map_init(struct live_map *map, uint64_t seed)
{
    *map = (struct live_map){0};
    live_table_init(&map->settled, seed);
}

void live_map_release(struct live_map *map)
{
    live_table_release(&map->settled);
    free(map->places);
    *map = (struct live_map){0};
}

static inline bool is_alive(const struct young_block *place)
{
    return (place->address & YOUNG_ALIVE) != 0;
}

static inline uint64_t address_of(const struct young_block *place)
{
    return place->address & ~YOUNG_ALIVE;
}

static enum err young_begin(struct live_map *map)
{
    if (map->places == NULL) {
        map->places = calloc(YOUNG_PLACES, sizeof(*map->places));
        if (map->places == NULL) {
            return ERR_NO_MEMORY;
        }
    }
    map->young = map->places;
    map->absent = 0;
    map->freed_young = 0;
    map->asked = 0;
    return ERR_OK;
}

static NOINLINE enum err young_end(struct live_map *map)
{
    for (uint32_t i = 0; i < YOUNG_PLACES; i++) {
        const struct young_block *ahead = map->young + i + SETTLE_AHEAD;
        if (i + SETTLE_AHEAD < YOUNG_PLACES && is_alive(ahead)) {
            live_table_prefetch(&map->settled, address_of(ahead));
        }
        struct young_block *young = map->young + i;
        if (is_alive(young)) {
            TRY(live_table_add_first(&map->settled, address_of(young), &young->block));
        }
        young->address = 0;
    }
    map->young = NULL;
    map->pause = PAUSE_EVENTS;
    return ERR_OK;
}

// The free of a young block saves some 150 instructions; a lookup in `settled` costs half of that
// more.
static enum err look_at_young(struct live_map *map)
{
    const bool is_worth_it = map->freed_young >= map->asked / 4;
    map->freed_young = 0;
    map->asked = 0;
    return is_worth_it ? ERR_OK : young_end(map);
}

// Add a second block of an address: all blocks of an address are in one queue, in `settled`.
static NOINLINE enum err
add_generation(struct live_map *map, uint64_t address, const struct live_block *block)
{
    struct young_block *place = live_map_place(map, address);
    map->absent = 0;
    if (address_of(place) == address) {
        TRY(live_table_add_first(&map->settled, address, &place->block));
        place->address = 0;
    }
    return live_table_add(&map->settled, address, block);
}

// Add a block that is not in its place. Another block may have to leave it.
static enum err add_young(struct live_map *map, uint64_t address, const struct live_block *block)
{
    struct young_block *place = live_map_place(map, address);
    map->asked++;
    if (UNLIKELY(address_of(place) == address ||
                 (map->absent != address && live_table_has(&map->settled, address)))) {
        return add_generation(map, address, block);
    }
    if (is_alive(place)) {
        TRY(live_table_add_first(&map->settled, address_of(place), &place->block));
        map->absent = 0; // it may be that address
    }
    *place = (struct young_block){.address = address | YOUNG_ALIVE, .block = *block};
    return ERR_OK;
}

enum err
live_map_add_settled(struct live_map *map, uint64_t address, const struct live_block *block)
{
    if (map->young == NULL && map->pause == 0) {
        TRY(young_begin(map));
    } else if (map->young != NULL && map->asked >= LOOK_ASKED) {
        TRY(look_at_young(map));
    }
    if (map->young == NULL) {
        map->pause--;
        TRY(live_table_add(&map->settled, address, block));
    } else {
        TRY(add_young(map, address, block));
    }
    map->live_count++;
    return ERR_OK;
}

bool live_map_take_settled(struct live_map *map, uint64_t address, struct live_block *out)
{
    struct young_block *place = map->young != NULL ? live_map_place(map, address) : NULL;
    if (place != NULL && place->address == address) {
        return false;
    }
    bool is_last;
    if (!live_table_take(&map->settled, address, out, &is_last)) {
        return false;
    }
    map->live_count--;
    map->asked++;
    map->pause -= map->pause > 0;
    if (place == NULL || !is_last) {
        return true;
    }
    *(is_alive(place) ? &map->absent : &place->address) = address;
    return true;
}

static const struct young_block *find_young(const struct live_map *map, uint64_t address)
{
    const struct young_block *place = map->young != NULL ? live_map_place(map, address) : NULL;
    return place != NULL && place->address == (address | YOUNG_ALIVE) ? place : NULL;
}

bool live_map_find(struct live_map *map, uint64_t address, struct live_block *out)
{
    const struct young_block *young = find_young(map, address);
    if (young == NULL) {
        return live_table_find(&map->settled, address, out);
    }
    *out = young->block;
    return true;
}

uint64_t live_map_bytes(const struct live_map *map)
{
    return live_table_bytes(&map->settled);
}

bool live_map_next(const struct live_map *map,
                   struct live_map_position *position,
                   uint64_t *address,
                   struct live_block *block)
{
    while (map->young != NULL && position->young < YOUNG_PLACES) {
        const struct young_block *young = map->young + position->young++;
        if (is_alive(young)) {
            *address = address_of(young);
            *block = young->block;
            return true;
        }
    }
    return live_table_next(&map->settled, &position->settled, address, block);
}

bool live_map_check(struct live_map *map)
{
    uint64_t young_count = 0;
    for (uint32_t i = 0; map->young != NULL && i < YOUNG_PLACES; i++) {
        const struct young_block *young = map->young + i;
        young_count += is_alive(young);
        if (young->address != 0 && (live_map_place(map, address_of(young)) != young ||
                                    live_table_has(&map->settled, address_of(young)))) {
            return false;
        }
    }
    return young_count + map->settled.live_count == map->live_count &&
           (map->young == NULL || map->absent == 0 ||
            !live_table_has(&map->settled, map->absent)) &&
           live_table_check(&map->settled);
}
