// SPDX-License-Identifier: MIT
// id_index: finds the ids of things in an array by their hash.
//
// Open addressing over 4-byte ids, between three eighths and three quarters full: 6 to 11 bytes a
// thing. The index has neither the things nor their number; the caller does.
//
// Single ids are never removed. A zeroed index is empty and valid.
// Context: H; one thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/err.h"

#define ID_NONE UINT32_MAX

struct id_index {
    uint32_t *slots; // owned
    size_t slot_count;
    size_t used_count;
};

// What an index needs to know of its things.
struct id_kind {
    uint64_t (*hash)(const void *thing);
    bool (*is_same)(const void *one, const void *other);
    size_t thing_bytes;
};

void id_index_release(struct id_index *index);

// Remove all ids, keep the memory.
void id_index_clear(struct id_index *index);

// Add the id of a new thing; `things` has the earlier ones. ERR_NO_MEMORY changes nothing.
enum err id_index_add(struct id_index *index,
                      const struct id_kind *kind,
                      const void *things,
                      const void *thing,
                      uint32_t id) MUST_USE;

// Return the id of the thing that is the same as `wanted`, or ID_NONE. Inline, as the next one, so
// that the functions of the kind are, too.
ALWAYS_INLINE uint32_t id_index_find(const struct id_index *index,
                                     const struct id_kind *kind,
                                     const void *things,
                                     const void *wanted)
{
    const size_t mask = index->slot_count - 1;
    size_t at = index->slot_count != 0 ? kind->hash(wanted) & mask : 0;
    uint32_t id = index->slot_count != 0 ? index->slots[at] : ID_NONE;
    while (id != ID_NONE && !kind->is_same((const char *)things + id * kind->thing_bytes, wanted)) {
        at = (at + 1) & mask;
        id = index->slots[at];
    }
    return id;
}

// Add `wanted`, which the index lacks, as number `next`. ERR_LIMIT, ERR_NO_MEMORY; both change
// nothing.
ALWAYS_INLINE MUST_USE enum err id_index_append(struct id_index *index,
                                                const struct id_kind *kind,
                                                const void *things,
                                                const void *wanted,
                                                size_t next,
                                                uint32_t *out)
{
    if (next >= ID_NONE) {
        return ERR_LIMIT;
    }
    *out = (uint32_t)next;
    return id_index_add(index, kind, things, wanted, (uint32_t)next);
}

// Set *out to the id of `wanted`; a new thing gets `next`, the number of things, and the caller
// appends it. Fails as id_index_append does.
ALWAYS_INLINE MUST_USE enum err id_index_number(struct id_index *index,
                                                const struct id_kind *kind,
                                                const void *things,
                                                const void *wanted,
                                                size_t next,
                                                uint32_t *out)
{
    const uint32_t id = id_index_find(index, kind, things, wanted);
    if (id == ID_NONE) {
        return id_index_append(index, kind, things, wanted, next, out);
    }
    *out = id;
    return ERR_OK;
}
