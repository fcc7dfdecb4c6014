// SPDX-License-Identifier: MIT
// vec: see vec.h.
#include "host/containers/vec.h"

#include "base/minmax.h"

enum {
    FIRST_CAPACITY = 8
};

void *vec_grown(void *items, size_t *cap, size_t len, size_t extra, size_t item_bytes)
{
    size_t needed;
    size_t bytes;
    if (__builtin_add_overflow(len, extra, &needed)) {
        return NULL;
    }
    // A growth by half keeps appending linear. The sum cannot overflow for an existing array.
    size_t wanted = *cap + *cap / 2;
    wanted = max_u64(wanted, FIRST_CAPACITY);
    wanted = max_u64(wanted, needed);
    // An object cannot be larger than PTRDIFF_MAX.
    if (__builtin_mul_overflow(wanted, item_bytes, &bytes) || bytes > PTRDIFF_MAX) {
        return NULL;
    }
    void *grown = realloc(items, bytes);
    if (grown != NULL) {
        *cap = wanted;
    }
    return grown;
}
