// SPDX-License-Identifier: MIT
// mapping_map: which stack mapped which part of one process's address space.
//
// A sorted list of disjoint ranges, each with the row of the mapping table that owns it. Setting a
// range cuts, shrinks or replaces what lies there, as munmap of a part, MAP_FIXED and mremap do.
//
//     before   |--- a ---|     |--- b ---|
//     set c         |----- c -----|
//     after    |-a--|----- c -----|- b --|
//
// Order. Changes of different threads come in any order within some ticks; each has a number, and
// of two to one address the later has the higher one. So a range gives way to higher numbers only,
// and what was unmapped stays as a range of nobody for MAPPING_SETTLED_MS, so that an older mapping
// that is read late does not come back to life.
//
// Bound: MAPPING_RANGES_MAX ranges, which is more than the kernel's own limit of mappings;
// neighbours of one row are merged when the list has grown. Beyond that a mapping has no range, and
// at twice as many an unmapping changes nothing: both are counted. Context: H, one thread. Ranges
// come from the program and are hostile; they must not wrap around. Failure: ERR_NO_MEMORY leaves
// the map as it was.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

#define MAPPING_RANGES_MAX 131072u
#define MAPPING_SETTLED_MS 1000u

struct mapped_range {
    uint64_t start;
    uint64_t end; // > start
    uint64_t number;
    uint64_t since_ms;
    uint32_t row; // REC_NONE: unmapped
};

DEFINE_VEC(mapped_range_vec, struct mapped_range);

// Told of each part that leaves `row`.
struct mapping_sink {
    void (*left)(void *context, uint32_t row, uint64_t bytes);
    void *context;
};

// Zeroed is empty and valid.
struct mapping_map {
    struct mapped_range_vec ranges; // sorted and disjoint
    struct mapped_range_vec scratch;
    size_t tidy_at;    // length at which to tidy up next
    uint64_t unplaced; // changes that found too many ranges
};

void mapping_map_release(struct mapping_map *map); // what it counted stays

// [start, end), which is not empty, belongs to what->row (REC_NONE: nobody) as of `number`. What a
// higher number has taken already leaves the row at once.
enum err mapping_map_set(struct mapping_map *map,
                         const struct mapped_range *what,
                         const struct mapping_sink *sink) MUST_USE;

// The range that holds `address`, or the first behind it; NULL if there is none.
const struct mapped_range *mapping_map_at(const struct mapping_map *map, uint64_t address);

// True if all invariants hold. For tests.
bool mapping_map_check(const struct mapping_map *map);
