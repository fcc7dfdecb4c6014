// SPDX-License-Identifier: MIT
// map_u64: a hash table from 64-bit keys to 32-bit values, with open addressing.
//
// Linear probing over a power of two, at most two thirds full, 12 bytes a slot. Removal shifts
// later entries back, so there are no tombstones and lookups never get slower. Key 0 marks a free
// slot, so its value is stored apart; callers may use key 0 like any other. A zeroed map is empty
// and valid. Context: H; one thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct map_u64 {
    uint64_t *keys;   // owned; 0 = free slot
    uint32_t *values; // owned; parallel to keys
    size_t slot_count;
    size_t used_count; // without key 0
    bool has_zero;
    uint32_t zero_value;
};

void map_u64_release(struct map_u64 *map);
void map_u64_clear(struct map_u64 *map); // removes all keys, keeps the memory

size_t map_u64_count(const struct map_u64 *map);

// Return a pointer to the value of `key`, NULL if there is none. Borrowed until the next put or
// remove.
uint32_t *map_u64_find(struct map_u64 *map, uint64_t key);

// Set *out to the value of `key`. Return false, and change nothing, if there is none.
bool map_u64_get(struct map_u64 *map, uint64_t key, uint32_t *out);

// Prefetch the memory that finding `key` will most likely need.
void map_u64_prefetch(const struct map_u64 *map, uint64_t key);

// Set the value of `key`, new or not. ERR_NO_MEMORY leaves the map unchanged.
enum err map_u64_put(struct map_u64 *map, uint64_t key, uint32_t value) MUST_USE;

// Set *out to the value of `key`; a new key gets `next`. So the keys of an array's items find their
// indices, if `next` is its length. ERR_LIMIT if that is UINT32_MAX or more, ERR_NO_MEMORY; both
// leave the map unchanged.
enum err map_u64_number(struct map_u64 *map, uint64_t key, size_t next, uint32_t *out) MUST_USE;

// The same for an answer: return the value; a failure is noted (memory_end.h), and the value is
// `next` then.
uint32_t map_u64_add(struct map_u64 *map, uint64_t key, size_t next);

// Make a key of two numbers.
static inline uint64_t map_u64_pair(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

// Remove `key`. Return whether it was present.
bool map_u64_remove(struct map_u64 *map, uint64_t key);

// Visit the entries in no particular order: start with *position = 0; false at the end. The map
// must not change during the walk.
bool map_u64_next(const struct map_u64 *map, size_t *position, uint64_t *key, uint32_t *value);
