// SPDX-License-Identifier: MIT
// live_map: the live blocks of one process, by address.
//
// Most blocks die young, also in programs with millions of old blocks. So a new block first goes
// into a small direct-mapped table, where its free finds it with one comparison. It stays there
// until another block needs its place, and moves to the live_table then.
//
//   add ---> recent (4096 places, by address) ---> table (when its place is wanted)
//   take <----'                      take <---------'
//
// Blocks of one address form a queue, first in first out.
// Invariant: an address in `recent` is not in `table`, so a block found in `recent` is the oldest
// of its address. A place keeps its address when the block is freed: allocators reuse it soon, and
// its presence proves that the address is not in `table`. For other addresses the live_table is
// asked.
//
// The recent table costs more than it saves if blocks do not die young. So the map checks from time
// to time how many recent blocks were freed. If they were too few, it moves all to `table`, and
// tries again later.
//
// Memory: of live_table, and up to 128 KiB for the used places.
// Context: H, one thread. Addresses come from the program and are hostile; they only choose places.
// Failure: ERR_NO_MEMORY leaves the map unchanged, without the block.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregate/live_blocks/live_table.h"
#include "base/compiler.h"
#include "base/err.h"

#define RECENT_PLACES 4096u
#define RECENT_ALIVE  ((uint64_t)1 << 63)

struct recent_block {
    uint64_t address; // not in `table`. With RECENT_ALIVE: has a block. 0: none
    struct live_block block;
};

struct live_map {
    struct live_table table;
    struct recent_block *recent; // RECENT_PLACES; NULL: not in use at present
    struct recent_block *places; // owned; memory of `recent`
    uint64_t live_count;         // blocks, younger ones of an address included
    uint32_t freed_recent;       // since the latest check
    uint32_t asked;              // lookups in `table` since the latest check
    uint32_t pause;              // events until `recent` is tried again
};

// Initialize an empty map. The program should not know `seed`.
void live_map_init(struct live_map *map, uint64_t seed);
void live_map_release(struct live_map *map); // accepts a zeroed map

// The slow paths of live_map_add and live_map_take. The first one takes the block by value, so that
// its caller can keep it in registers.
enum err live_map_add_to_table(struct live_map *map, uint64_t address, struct live_block block)
    MUST_USE;
bool live_map_take_from_table(struct live_map *map, uint64_t address, struct live_block *out);

// Heap blocks of glibc are 16 bytes apart.
static inline uint32_t recent_place(uint64_t address)
{
    return (uint32_t)(address >> 4 ^ address >> 16) & (RECENT_PLACES - 1);
}

static inline struct recent_block *live_map_place(const struct live_map *map, uint64_t address)
{
    return map->recent + recent_place(address);
}

static inline void
recent_block_set(struct recent_block *place, uint64_t address, const struct live_block *block)
{
    place->address = address | RECENT_ALIVE;
    // Field by field: a whole block would be copied through memory.
    place->block.size_bytes = block->size_bytes;
    place->block.born_ms = block->born_ms;
    place->block.row = block->row;
    place->block.shift = block->shift;
}

// Add a block, which is the youngest of its address, to `recent` if its place has that address.
// Return false, and change nothing, if not.
static inline bool
live_map_add_recent(struct live_map *map, uint64_t address, const struct live_block *block)
{
    struct recent_block *place = map->recent != NULL ? live_map_place(map, address) : NULL;
    if (UNLIKELY(place == NULL || place->address != address)) {
        return false;
    }
    recent_block_set(place, address, block);
    map->live_count++;
    return true;
}

// Add a block as the youngest of its address, which is not 0 and has at most 56 bits.
static inline MUST_USE enum err
live_map_add(struct live_map *map, uint64_t address, const struct live_block *block)
{
    return LIKELY(live_map_add_recent(map, address, block))
               ? ERR_OK
               : live_map_add_to_table(map, address, *block);
}

// Remove the block at `address` into *out, if it is in `recent`. Return false if not.
static inline bool
live_map_take_recent(struct live_map *map, uint64_t address, struct live_block *out)
{
    struct recent_block *place = map->recent != NULL ? live_map_place(map, address) : NULL;
    if (UNLIKELY(place == NULL || place->address != (address | RECENT_ALIVE))) {
        return false;
    }
    *out = place->block;
    place->address = address & ~RECENT_ALIVE; // hostile input may have the bit set
    map->live_count--;
    map->freed_recent++;
    return true;
}

// Remove the oldest block at `address` into *out. Return false if there is none.
static inline bool live_map_take(struct live_map *map, uint64_t address, struct live_block *out)
{
    return LIKELY(live_map_take_recent(map, address, out)) ||
           live_map_take_from_table(map, address, out);
}

// Return false while the map is so small that prefetching costs more than it saves.
static inline bool live_map_needs_prefetch(const struct live_map *map)
{
    return live_table_needs_prefetch(&map->table);
}

// Start loading what a later live_map_take of `address` will need. Affects only speed.
static inline void live_map_prefetch(const struct live_map *map, uint64_t address)
{
    if (map->recent == NULL || (live_map_place(map, address)->address & ~RECENT_ALIVE) != address) {
        live_table_prefetch(&map->table, address);
    }
}

// Start loading what a later live_map_add will need, which may move another block to `table`.
static inline void live_map_prefetch_add(const struct live_map *map, uint64_t address)
{
    if (map->recent == NULL) {
        live_table_prefetch(&map->table, address);
        return;
    }
    const uint64_t there = live_map_place(map, address)->address;
    if ((there & ~RECENT_ALIVE) == address) {
        return;
    }
    live_table_prefetch(&map->table, address);
    if ((there & RECENT_ALIVE) != 0) {
        live_table_prefetch(&map->table, there & ~RECENT_ALIVE);
    }
}

// The addresses that a walk has found in `recent`, by place.
struct recent_seen {
    uint64_t addresses[RECENT_PLACES];
};

// A position in a walk over all blocks. The order of addresses is arbitrary; blocks of one address
// come oldest first. Zeroed: the start.
// The blocks in `recent` are the first part, those of the table follow (live_table.h). The map may
// change between parts if `seen` has room: what has moved to the table meanwhile is not visited
// twice.
struct live_map_position {
    uint32_t recent;
    struct live_table_position table;
    struct recent_seen *seen; // borrowed, zeroed; NULL: none
};
enum live_step live_map_step(const struct live_map *map,
                             struct live_map_position *position,
                             uint64_t *address,
                             struct live_block *block);

// Step over the ends of parts of a map that does not change. Return false at the end.
bool live_map_next(const struct live_map *map,
                   struct live_map_position *position,
                   uint64_t *address,
                   struct live_block *block);

// Give rows new numbers, none larger than the old one: row r becomes rows[r].
void live_map_renumber(struct live_map *map, const uint32_t *rows);

// Return true if all invariants hold, those of live_table included. Visits all blocks; for tests.
bool live_map_check(struct live_map *map);
