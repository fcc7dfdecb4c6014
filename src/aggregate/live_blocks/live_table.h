// SPDX-License-Identifier: MIT
// live_table: the older live blocks of one process, by address.
//
// A block is one slot of 16 bytes: address / 8 (47 bits), row (26), size (20) and time of birth
// (34). A cache line has four slots. The hash of a block names two lines, and the block is in one
// of them (cuckoo hashing): a lookup reads at most two lines, removal moves nothing, and the table
// works until it is nine tenths full. Lines form segments of 4 to 512 KiB, which grow by two
// fifths at a time. A segment of the largest size splits in two; a directory finds segments by the
// top bits of the hash. So growth never copies more than one segment at once.
//
// A block that does not fit a slot goes to a box: 1 MiB or more, a row or time beyond the bits
// above, a sampling weight, or a second block of its address. An address may have several live
// blocks, because lanes are read one after the other: its blocks form a queue, first in first out.
// A small map of their own has the addresses that are not multiples of 8 or have more than 50 bits.
//
// Memory: 16 bytes / 0.68 to 0.84, so 19 to 23.5 bytes a block. A box costs 40 bytes more, and is
// rare.
// Invariants: live_table_check.
// Context: H, one thread. Addresses come from the program and are hostile: the hash is seeded, and
// all chains are bounded.
// Failure: ERR_NO_MEMORY leaves the map unchanged, without the block.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregate/live_blocks/live_boxes.h"
#include "aggregate/live_blocks/live_segments.h"
#include "base/err.h"
#include "host/containers/map_u64.h"

struct live_table {
    struct live_segments segments;
    struct live_boxes boxes;
    struct map_u64 odd;  // addresses that no slot can hold -> first box
    uint64_t live_count; // blocks, younger ones of an address included
};

// Initialize an empty map. The program should not know `seed`.
void live_table_init(struct live_table *map, uint64_t seed);
void live_table_release(struct live_table *map); // accepts a zeroed map

// Add a block as the youngest of its address.
enum err live_table_add(struct live_table *map, uint64_t address, const struct live_block *block)
    MUST_USE;

// Add a block at an address that has none.
enum err live_table_add_first(struct live_table *map,
                              uint64_t address,
                              const struct live_block *block) MUST_USE;

// Remove the oldest block at `address` into *out. Return false if there is none. *is_last: no
// younger block is left.
bool live_table_take(struct live_table *map,
                     uint64_t address,
                     struct live_block *out,
                     bool *is_last);

// Return whether `address` has a block.
bool live_table_has(struct live_table *map, uint64_t address);

// Return false while the map is so small that prefetching costs more than it saves.
bool live_table_needs_prefetch(const struct live_table *map);

// Start loading what a later call for `address` will need. Affects only speed.
void live_table_prefetch(const struct live_table *map, uint64_t address);

// What a step of a walk found.
enum live_step {
    LIVE_STEP_BLOCK,
    LIVE_STEP_PART, // the end of a part: the table may change before the next step
    LIVE_STEP_END,
};

// A position in a walk over all blocks. The order of addresses is arbitrary; blocks of one address
// come oldest first. Zeroed: the start.
// A part is a segment, or the blocks of one odd address. Segments are visited in the order of the
// hashes that they have, which splits keep. So if the table changes between parts, each block that
// stays is visited once. Only odd addresses may be missed then, or visited twice.
struct live_table_position {
    uint32_t hashes; // top bits of the hash, SEGMENT_DEPTH_MAX of them, where the segment begins
    uint32_t slot;
    uint32_t box; // index + 1 of the next box of the current address; 0: none
    size_t odd;
    uint64_t address;
};
enum live_step live_table_step(const struct live_table *map,
                               struct live_table_position *position,
                               uint64_t *address,
                               struct live_block *block);

// Give rows new numbers, none larger than the old one: row r becomes rows[r].
void live_table_renumber(struct live_table *map, const uint32_t *rows);

// Return true if all invariants hold: each block is where lookups search it, counts agree, and no
// segment is larger or emptier than allowed. Visits all blocks; for tests.
bool live_table_check(const struct live_table *map);
