// SPDX-License-Identifier: MIT
// mapping_map: which stack mapped which part of one process's address space.
//
// A sorted list of disjoint ranges, each with the row of the mapping table that owns it. Setting a
// range cuts, shrinks or replaces older ranges, as munmap of a part, MAP_FIXED and mremap do.
//
//     before   |--- a ---|     |--- b ---|
//     set c         |----- c -----|
//     after    |-a--|----- c -----|- b --|
//
// Order: changes of different threads arrive in any order within some ticks. Each has a number; of
// two changes to one address the later has the higher one. So only a higher number replaces a
// range. An unmapped range stays, without an owner, for MAPPING_KEPT_MS, so that an older
// mapping that arrives late does not come back to life.
//
// Bound: MAPPING_RANGES_MAX ranges, more than the kernel's own limit of mappings. Neighbours of one
// row are merged when the list has grown. Beyond the bound a mapping gets no range; at twice the
// bound an unmapping changes nothing. Both are counted.
// Context: H, one thread. Ranges come from the program and are hostile; the caller ensures that
// they do not wrap around.
// Failure: ERR_NO_MEMORY leaves the map unchanged.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

#define MAPPING_RANGES_MAX 131072u
#define MAPPING_KEPT_MS    1000u
#define MAPPING_ROW_HEAP   (REC_NONE - 1) // in place of a row: an unknown allocator has mapped it
#define MAPPING_ROW_HEAPS  0xc0000000u    // plus a module: the module's allocator has mapped it

struct mapped_range {
    uint64_t start;
    uint64_t end; // > start
    uint64_t number;
    uint64_t since_ms;
    uint32_t row; // REC_NONE: unmapped; MAPPING_ROW_HEAP, MAPPING_ROW_HEAPS + module
};

// Whether an allocator has mapped it.
static inline bool mapped_range_is_heap(const struct mapped_range *range)
{
    return range->row >= MAPPING_ROW_HEAPS && range->row != REC_NONE;
}

DEFINE_VEC(mapped_range_vec, struct mapped_range);

// Called for each part that leaves `row`.
struct mapping_sink {
    void (*left)(void *context, uint32_t row, uint64_t bytes);
    void *context;
};

// Zeroed is empty and valid.
struct mapping_map {
    struct mapped_range_vec ranges; // sorted and disjoint
    struct mapped_range_vec scratch;
    size_t tidy_at;    // length at which to merge neighbours next
    uint64_t unplaced; // changes that found too many ranges
};

void mapping_map_release(struct mapping_map *map); // keeps its counts

// Give [start, end), which is not empty, to what->row (REC_NONE: unmapped) as of `number`. Parts
// that a higher number has taken already leave the row at once.
enum err mapping_map_set(struct mapping_map *map,
                         const struct mapped_range *what,
                         const struct mapping_sink *sink) MUST_USE;

// Return the range that holds `address`, or the first one after it; NULL if there is none.
const struct mapped_range *mapping_map_at(const struct mapping_map *map, uint64_t address);

// Return true if all invariants hold. For tests.
bool mapping_map_check(const struct mapping_map *map);
