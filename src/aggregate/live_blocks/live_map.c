// SPDX-License-Identifier: MIT
// live_map: see the header. This file moves blocks between `recent` and `table`.
#include "aggregate/live_blocks/live_map.h"

#include <stdlib.h>

enum {
    CHECK_AFTER = 2048, // the recent table is checked after so many lookups
    PAUSE_EVENTS = 65536,
    MOVE_AHEAD = 16, // blocks whose places are prefetched
};

void live_map_init(struct live_map *map, uint64_t seed)
{
    *map = (struct live_map){0};
    live_table_init(&map->table, seed);
}

void live_map_release(struct live_map *map)
{
    live_table_release(&map->table);
    free(map->places);
    *map = (struct live_map){0};
}

static inline bool is_alive(const struct recent_block *place)
{
    return (place->address & RECENT_ALIVE) != 0;
}

static inline uint64_t address_of(const struct recent_block *place)
{
    return place->address & ~RECENT_ALIVE;
}

static enum err recent_begin(struct live_map *map)
{
    if (map->places == NULL) {
        map->places = calloc(RECENT_PLACES, sizeof(*map->places));
        if (map->places == NULL) {
            return ERR_NO_MEMORY;
        }
    }
    map->recent = map->places;
    map->freed_recent = 0;
    map->asked = 0;
    return ERR_OK;
}

static NOINLINE enum err recent_end(struct live_map *map)
{
    for (uint32_t i = 0; i < RECENT_PLACES; i++) {
        const struct recent_block *ahead = map->recent + i + MOVE_AHEAD;
        if (i + MOVE_AHEAD < RECENT_PLACES && is_alive(ahead)) {
            live_table_prefetch(&map->table, address_of(ahead));
        }
        struct recent_block *recent = map->recent + i;
        if (is_alive(recent)) {
            TRY(live_table_add_first(&map->table, address_of(recent), &recent->block));
        }
        recent->address = 0;
    }
    map->recent = NULL;
    map->pause = PAUSE_EVENTS;
    return ERR_OK;
}

// The free of a recent block saves some 150 instructions; a lookup in `table` costs half of that
// more.
static enum err check_recent(struct live_map *map)
{
    const bool is_worth_it = map->freed_recent >= map->asked / 4;
    map->freed_recent = 0;
    map->asked = 0;
    return is_worth_it ? ERR_OK : recent_end(map);
}

// Add a second block of an address: all blocks of an address are in one queue, in `table`.
static NOINLINE enum err
add_generation(struct live_map *map, uint64_t address, const struct live_block *block)
{
    struct recent_block *place = live_map_place(map, address);
    if (address_of(place) == address) {
        TRY(live_table_add_first(&map->table, address, &place->block));
        place->address = 0;
    }
    return live_table_add(&map->table, address, block);
}

// Add a block that is not in its place. Another block may have to leave it.
static enum err add_recent(struct live_map *map, uint64_t address, const struct live_block *block)
{
    struct recent_block *place = live_map_place(map, address);
    map->asked++;
    if (UNLIKELY(address_of(place) == address || live_table_has(&map->table, address))) {
        return add_generation(map, address, block);
    }
    if (is_alive(place)) {
        TRY(live_table_add_first(&map->table, address_of(place), &place->block));
    }
    recent_block_set(place, address, block);
    return ERR_OK;
}

enum err live_map_add_to_table(struct live_map *map, uint64_t address, struct live_block block)
{
    if (map->recent == NULL && map->pause == 0) {
        TRY(recent_begin(map));
    } else if (map->recent != NULL && map->asked >= CHECK_AFTER) {
        TRY(check_recent(map));
    }
    if (map->recent == NULL) {
        map->pause--;
        TRY(live_table_add(&map->table, address, &block));
    } else {
        TRY(add_recent(map, address, &block));
    }
    map->live_count++;
    return ERR_OK;
}

bool live_map_take_from_table(struct live_map *map, uint64_t address, struct live_block *out)
{
    struct recent_block *place = map->recent != NULL ? live_map_place(map, address) : NULL;
    if (place != NULL && place->address == address) {
        return false;
    }
    bool is_last;
    if (!live_table_take(&map->table, address, out, &is_last)) {
        return false;
    }
    map->live_count--;
    map->asked++;
    map->pause -= map->pause > 0;
    if (place != NULL && is_last && !is_alive(place)) {
        place->address = address;
    }
    return true;
}

// Step to the next block in `recent`. Return false at its end.
static bool step_in_recent(const struct live_map *map,
                           struct live_map_position *position,
                           uint64_t *address,
                           struct live_block *block)
{
    while (map->recent != NULL && position->recent < RECENT_PLACES) {
        const uint32_t place = position->recent++;
        const struct recent_block *recent = map->recent + place;
        if (is_alive(recent)) {
            *address = address_of(recent);
            *block = recent->block;
            if (position->seen != NULL) {
                position->seen->addresses[place] = *address;
            }
            return true;
        }
    }
    return false;
}

static bool was_seen(const struct live_map_position *position, uint64_t address)
{
    return position->seen != NULL && position->seen->addresses[recent_place(address)] == address;
}

enum live_step live_map_step(const struct live_map *map,
                             struct live_map_position *position,
                             uint64_t *address,
                             struct live_block *block)
{
    if (position->recent <= RECENT_PLACES) {
        if (step_in_recent(map, position, address, block)) {
            return LIVE_STEP_BLOCK;
        }
        position->recent = RECENT_PLACES + 1;
        return LIVE_STEP_PART;
    }
    for (;;) {
        const enum live_step step = live_table_step(&map->table, &position->table, address, block);
        if (step != LIVE_STEP_BLOCK || !was_seen(position, *address)) {
            return step;
        }
    }
}

bool live_map_next(const struct live_map *map,
                   struct live_map_position *position,
                   uint64_t *address,
                   struct live_block *block)
{
    enum live_step step = LIVE_STEP_PART;
    while (step == LIVE_STEP_PART) {
        step = live_map_step(map, position, address, block);
    }
    return step == LIVE_STEP_BLOCK;
}

void live_map_renumber(struct live_map *map, const uint32_t *rows)
{
    for (uint32_t i = 0; map->recent != NULL && i < RECENT_PLACES; i++) {
        if (is_alive(map->recent + i)) {
            map->recent[i].block.row = rows[map->recent[i].block.row];
        }
    }
    live_table_renumber(&map->table, rows);
}

bool live_map_check(struct live_map *map)
{
    uint64_t recent_count = 0;
    for (uint32_t i = 0; map->recent != NULL && i < RECENT_PLACES; i++) {
        const struct recent_block *recent = map->recent + i;
        recent_count += is_alive(recent);
        if (recent->address != 0 && (live_map_place(map, address_of(recent)) != recent ||
                                     live_table_has(&map->table, address_of(recent)))) {
            return false;
        }
    }
    return recent_count + map->table.live_count == map->live_count && live_table_check(&map->table);
}
