// SPDX-License-Identifier: MIT
// id_index: finds the ids of things in an array by their hash.
//
// Open addressing over 4-byte ids, between three eighths and three quarters full: 6 to 11 bytes a
// thing. It knows neither the things nor their equality; the caller walks the candidates:
//
//     for (size_t at = id_index_start(&ix, hash); (id = id_index_at(&ix, at)) != ID_NONE;
//          at = id_index_next(&ix, at)) { if (things[id] is it) return id; }
//
// Single ids are never removed. A zeroed index is empty and valid.
// Context: H; one thread at a time.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define ID_NONE UINT32_MAX

struct id_index {
    uint32_t *slots; // owned
    size_t slot_count;
    size_t used_count;
};

void id_index_release(struct id_index *index);

// Remove all ids, keep the memory.
void id_index_clear(struct id_index *index);

static inline size_t id_index_start(const struct id_index *index, uint64_t hash)
{
    return hash & (index->slot_count - 1);
}

static inline uint32_t id_index_at(const struct id_index *index, size_t at)
{
    return index->slot_count == 0 ? ID_NONE : index->slots[at];
}

static inline size_t id_index_next(const struct id_index *index, size_t at)
{
    return (at + 1) & (index->slot_count - 1);
}

// Add a new `id`. `hash_of` returns the hash of an earlier id when the index grows. ERR_NO_MEMORY
// changes nothing.
enum err id_index_add(struct id_index *index,
                      uint64_t hash,
                      uint32_t id,
                      uint64_t (*hash_of)(const void *things, uint32_t id),
                      const void *things) MUST_USE;
