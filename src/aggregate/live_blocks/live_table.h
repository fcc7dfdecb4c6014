// SPDX-License-Identifier: MIT
// live_table: the blocks of one process that are alive, by address.
//
// How. A block is one slot of 16 bytes: address / 8 (47 bits), row (26), size (20) and time of
// birth (34). Slots lie four to a cache line, and a block lives in one of two lines that its hash
// names (cuckoo hashing): a lookup reads at most two lines and searches nothing, removal moves
// nothing, and the table works until nine tenths full. Lines make up segments of 4 to 512 KiB that
// grow by a quarter at a time; a segment at its largest splits in two, found through a directory
// by the top bits of the hash. So growth never copies more than that at once.
//
// What a slot cannot say goes to a box: blocks of 1 MiB and more, rows and times beyond the bits
// above, blocks that stand for several, and second generations. An address may be live more than
// once, because lanes are read one after the other: blocks of one address form a queue, first in
// first out. Addresses that are no multiple of 8 or have more than 50 bits are found through a
// small map of their own.
//
// Memory: 16 bytes / 0.68 to 0.84, so 19 to 23.5 bytes a block; boxes cost 40 more, and are rare by
// nature. Invariants: live_table_check. Context: H, one thread. The addresses come from the
// program and are hostile: the hash is seeded, and all chains are bounded. Failure: ERR_NO_MEMORY
// leaves the map as it was, without the block.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregate/live_blocks/live_boxes.h"
#include "base/err.h"
#include "host/containers/map_u64.h"

struct live_slot; // see slot_line.h

struct live_segment {
    struct live_slot *slots; // owned; page_count pages of 256 each
    uint32_t page_count;
    uint32_t used_count;
    uint32_t depth; // how many top bits of the hash all its addresses share
};

struct live_table {
    uint64_t seed;
    uint32_t *directory; // owned; 1 << depth segment numbers
    uint32_t depth;
    struct live_segment *segments; // owned
    uint32_t segment_count;
    uint32_t segment_cap;
    uint32_t kept_pages; // a segment of no more does not shrink
    struct live_boxes boxes;
    struct map_u64 odd;  // addresses that no slot can hold -> first box
    uint64_t live_count; // blocks, generations included
    uint64_t page_count; // of all segments
};

// An empty map. `seed` should be unknown to the program.
void live_table_init(struct live_table *map, uint64_t seed);
void live_table_release(struct live_table *map); // accepts a zeroed map

// Adds a block as the youngest of its address.
enum err live_table_add(struct live_table *map, uint64_t address, const struct live_block *block)
    MUST_USE;

// The same where there is none at that address.
enum err live_table_add_first(struct live_table *map,
                              uint64_t address,
                              const struct live_block *block) MUST_USE;

// Removes the oldest block at `address` into *out; false if there is none. *is_last: there is no
// younger one.
bool live_table_take(struct live_table *map,
                     uint64_t address,
                     struct live_block *out,
                     bool *is_last);

// Whether there is a block at `address`.
bool live_table_has(struct live_table *map, uint64_t address);

// The oldest block at `address`; false if there is none.
bool live_table_find(struct live_table *map, uint64_t address, struct live_block *out);

// Whether a block equal to `block` lives at `address`, be it the oldest or a younger one.
bool live_table_holds(struct live_table *map, uint64_t address, const struct live_block *block);

// False while the map is so small that fetching ahead is not worth its price.
bool live_table_needs_prefetch(const struct live_table *map);

// Starts loading what a later call for `address` will need. No effect but speed.
void live_table_prefetch(const struct live_table *map, uint64_t address);

// Memory held, in bytes.
uint64_t live_table_bytes(const struct live_table *map);

// A walk over all blocks, in no order but oldest first for one address. Zeroed = at the start. The
// map must not change meanwhile.
struct live_table_position {
    uint32_t segment;
    uint32_t slot;
    uint32_t box; // index + 1 of the next box of the current address, 0 = none
    size_t odd;
    uint64_t address;
};
bool live_table_next(const struct live_table *map,
                     struct live_table_position *position,
                     uint64_t *address,
                     struct live_block *block);

// True if all invariants hold: each block is where lookups search it, counts agree, and no segment
// is longer or emptier than it may be. Walks everything; for tests.
bool live_table_check(const struct live_table *map);
