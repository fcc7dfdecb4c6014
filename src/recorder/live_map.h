// SPDX-License-Identifier: MIT
// live_map: the blocks of one process that are alive, by address.
//
// Most blocks die young. So a new block is first put into a small direct-mapped table, where its
// free finds it with one comparison; there it stays until another block wants its place, and only
// then settles in the settled_map, which is made for millions.
//
//   add ---> young (4096 places, by address) ---> settled (when its place is wanted)
//   take <----'                      take <---------'
//
// Blocks of one address form a queue, first in first out. Hence the invariant: an address that is
// in `young` is not in `settled`, so whoever is found there is the oldest of its address. An array
// of counters over settled addresses says in most cases that an address cannot be settled; where
// it does not, the new block settles at once. With many settled blocks it would hardly ever say
// so: then there are no young ones until most of the settled have gone.
//
// Memory: that of settled_map, and up to 144 KiB for a process with few blocks. Context: H, one
// thread. The addresses come from the program and are hostile: they choose places, nothing else.
// Failure: ERR_NO_MEMORY leaves the map as it was, without the block.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/err.h"
#include "recorder/settled_map.h"

#define YOUNG_PLACES     4096u
#define SETTLED_COUNTERS 16384u
#define SETTLED_MANY     8192u // then there are no young ones any more
#define SETTLED_FEW      2048u // then there are again

struct young_block {
    uint64_t address; // 0: the place is free
    struct live_block block;
};

struct live_map {
    struct settled_map settled;
    struct young_block *young; // owned, YOUNG_PLACES; NULL: there are none
    uint8_t *counters;         // in the same memory; SETTLED_COUNTERS. One that is full stays so.
    uint64_t live_count;       // blocks, generations included
};

// An empty map. `seed` should be unknown to the program.
void live_map_init(struct live_map *map, uint64_t seed);
void live_map_release(struct live_map *map); // accepts a zeroed map

// The rest of live_map_add and live_map_take.
enum err live_map_add_settled(struct live_map *map,
                              uint64_t address,
                              const struct live_block *block) MUST_USE;
bool live_map_take_settled(struct live_map *map, uint64_t address, struct live_block *out);

// Heap blocks of glibc lie 16 bytes apart.
static inline struct young_block *live_map_place(const struct live_map *map, uint64_t address)
{
    return map->young + ((address >> 4 ^ address >> 16) & (YOUNG_PLACES - 1));
}

static inline uint8_t *live_map_counter(const struct live_map *map, uint64_t address)
{
    return map->counters + ((address >> 4 ^ address >> 18) & (SETTLED_COUNTERS - 1));
}

// Adds a block as the youngest of its address, which is not 0.
static inline MUST_USE enum err
live_map_add(struct live_map *map, uint64_t address, const struct live_block *block)
{
    if (LIKELY(map->young != NULL)) {
        struct young_block *place = live_map_place(map, address);
        if (LIKELY(place->address == 0 && *live_map_counter(map, address) == 0)) {
            *place = (struct young_block){.address = address, .block = *block};
            map->live_count++;
            return ERR_OK;
        }
    }
    return live_map_add_settled(map, address, block);
}

// Removes the oldest block at `address` into *out; false if there is none.
static inline bool live_map_take(struct live_map *map, uint64_t address, struct live_block *out)
{
    if (LIKELY(map->young != NULL)) {
        struct young_block *place = live_map_place(map, address);
        if (LIKELY(place->address == address && address != 0)) {
            *out = place->block;
            place->address = 0;
            map->live_count--;
            return true;
        }
    }
    return live_map_take_settled(map, address, out);
}

// The oldest block at `address`; false if there is none.
bool live_map_find(struct live_map *map, uint64_t address, struct live_block *out);

// Whether a block equal to `block` lives at `address`, be it the oldest or a younger one.
bool live_map_holds(struct live_map *map, uint64_t address, const struct live_block *block);

// False while the map is so small that fetching ahead is not worth its price.
static inline bool live_map_needs_prefetch(const struct live_map *map)
{
    return settled_map_needs_prefetch(&map->settled);
}

// Starts loading what a later call for `address` will need; live_map_use_hint says when it comes.
// No effect but speed.
static inline void live_map_prefetch(struct live_map *map, uint64_t address, uint32_t number)
{
    settled_map_prefetch(&map->settled, address, number);
}

static inline void live_map_use_hint(struct live_map *map, uint32_t number)
{
    settled_map_use_hint(&map->settled, number);
}

// Memory held for blocks that have settled, in bytes.
uint64_t live_map_bytes(const struct live_map *map);

// A walk over all blocks, in no order but oldest first for one address. Zeroed = at the start. The
// map must not change meanwhile.
struct live_map_position {
    uint32_t young;
    struct settled_map_position settled;
};
bool live_map_next(const struct live_map *map,
                   struct live_map_position *position,
                   uint64_t *address,
                   struct live_block *block);

// True if all invariants hold, those of settled_map too. Walks everything; for tests.
bool live_map_check(struct live_map *map);
