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
    // Half as much again keeps appending linear; the sum cannot overflow for an array that exists.
    size_t wanted = *cap + *cap / 2;
    wanted = max_u64(wanted, FIRST_CAPACITY);
    wanted = max_u64(wanted, needed);
    // No object can be larger than PTRDIFF_MAX, so there is no need to ask.
    if (__builtin_mul_overflow(wanted, item_bytes, &bytes) || bytes > PTRDIFF_MAX) {
        return NULL;
    }
    void *grown = realloc(items, bytes);
    if (grown != NULL) {
        *cap = wanted;
    }
    return grown;
}
