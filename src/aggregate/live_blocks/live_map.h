// SPDX-License-Identifier: MIT
// live_map: the blocks of one process that are alive, by address.
//
// Most blocks die young, also in programs with millions of old ones. So a new block is first put
// into a small direct-mapped table, where its free finds it with one comparison; there it stays
// until another block wants its place, and only then settles in the live_table.
//
//   add ---> young (4096 places, by address) ---> settled (when its place is wanted)
//   take <----'                      take <---------'
//
// Blocks of one address form a queue, first in first out. Hence the invariant: an address that is
// in `young` is not in `settled`, so whoever is found there is the oldest of its address. A place
// therefore keeps the address of a block that was freed: allocators use it again soon, and then it
// is known not to be settled. Of other addresses the live_table is asked.
//
// That costs more than it saves where blocks do not die young. So the young are looked at now and
// then, and where too few of them were freed, all settle, and it is tried again some time later.
//
// Memory: that of live_table, and up to 128 KiB, as far as places are used. Context: H, one
// thread. The addresses come from the program and are hostile: they choose places, nothing else.
// Failure: ERR_NO_MEMORY leaves the map as it was, without the block.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregate/live_blocks/live_table.h"
#include "base/compiler.h"
#include "base/err.h"

#define YOUNG_PLACES 4096u
#define YOUNG_ALIVE  ((uint64_t)1 << 63)

struct young_block {
    uint64_t address; // is not in `settled`. With YOUNG_ALIVE: has a block. 0: none
    struct live_block block;
};

struct live_map {
    struct live_table settled;
    struct young_block *young;  // YOUNG_PLACES; NULL: there are none at present
    struct young_block *places; // owned; their memory
    uint64_t live_count;        // blocks, generations included
    uint64_t absent;            // not in `settled`: was the latest to be freed there; 0: none
    uint64_t fetched;           // what live_table needs for it has been fetched last
    uint32_t freed_young;       // since the young were looked at
    uint32_t asked;             // how often `settled` was needed since
    uint32_t pause;             // so many events without young ones are to come
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

// Adds a block as the youngest of its address, which is not 0 and has at most 56 bits.
static inline MUST_USE enum err
live_map_add(struct live_map *map, uint64_t address, const struct live_block *block)
{
    if (LIKELY(map->young != NULL)) {
        struct young_block *place = live_map_place(map, address);
        if (LIKELY(place->address == address)) {
            *place = (struct young_block){.address = address | YOUNG_ALIVE, .block = *block};
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
        if (LIKELY(place->address == (address | YOUNG_ALIVE))) {
            *out = place->block;
            place->address = address & ~YOUNG_ALIVE; // a program may have said anything
            map->live_count--;
            map->freed_young++;
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
    return live_table_needs_prefetch(&map->settled);
}

// Starts loading what a later live_map_take of `address` will need. No effect but speed.
static inline void live_map_prefetch(struct live_map *map, uint64_t address)
{
    if (map->young == NULL || (live_map_place(map, address)->address & ~YOUNG_ALIVE) != address) {
        map->fetched = address;
        live_table_prefetch(&map->settled, address);
    }
}

// The same for live_map_add, which may make another block settle.
static inline void live_map_prefetch_add(struct live_map *map, uint64_t address)
{
    if (map->young == NULL) {
        live_table_prefetch(&map->settled, address);
        return;
    }
    const uint64_t there = live_map_place(map, address)->address;
    if ((there & ~YOUNG_ALIVE) == address) {
        return;
    }
    if (map->fetched != address) { // else it will most likely be known to be absent
        live_table_prefetch(&map->settled, address);
    }
    if ((there & YOUNG_ALIVE) != 0) {
        live_table_prefetch(&map->settled, there & ~YOUNG_ALIVE);
    }
}

// Memory held for blocks that have settled, in bytes.
uint64_t live_map_bytes(const struct live_map *map);

// A walk over all blocks, in no order but oldest first for one address. Zeroed = at the start. The
// map must not change meanwhile.
struct live_map_position {
    uint32_t young;
    struct live_table_position settled;
};
bool live_map_next(const struct live_map *map,
                   struct live_map_position *position,
                   uint64_t *address,
                   struct live_block *block);

// True if all invariants hold, those of live_table too. Walks everything; for tests.
bool live_map_check(struct live_map *map);
