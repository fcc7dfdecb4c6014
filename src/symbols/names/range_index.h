// SPDX-License-Identifier: MIT
// range_index: find the address ranges that hold an address. Ranges may overlap and nest.
//
// Ranges are added in any order, then sealed: sorted by begin, each with the largest end of all
// ranges up to it. A search starts at the last range that begins at or before the address,
// continues downwards, and stops where no lower range reaches the address. So it yields the
// innermost range first. Hostile input could make every search visit every range; SEARCH_LIMIT
// prevents that. A zeroed index is empty and valid. Owns its arrays. Context: H.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"

struct range {
    uint64_t begin;
    uint64_t end; // exclusive
    uint32_t value;
};

DEFINE_VEC(range_vec, struct range);

struct range_index {
    struct range_vec ranges;
    struct u64_vec reach; // reach[i] = largest end in ranges[0..i]; empty until sealed
};

void range_index_release(struct range_index *index);
void range_index_clear(struct range_index *index);

// Add a range. Ignore an empty one.
enum err range_index_add(struct range_index *index, uint64_t begin, uint64_t end, uint32_t value)
    MUST_USE;

// End the adding. A search yields ranges with the same begin in ascending order of `value`.
enum err range_index_seal(struct range_index *index) MUST_USE;

struct range_search {
    size_t next; // index of the next range to check, plus one
    size_t steps;
};

struct range_search range_index_search(const struct range_index *index, uint64_t address);

// Return the next range that holds `address`, or NULL. Borrowed from the index.
const struct range *
range_index_next(const struct range_index *index, struct range_search *search, uint64_t address);
