// SPDX-License-Identifier: MIT
#include "host/containers/vec.h"

#include "base/minmax.h"
#include "base/order.h"
#include "host/containers/memory_end.h"

enum {
    FIRST_CAPACITY = 8
};

void *vec_grown(void *items, size_t *cap, size_t len, size_t extra, size_t item_bytes)
{
    size_t needed;
    size_t bytes;
    if (__builtin_add_overflow(len, extra, &needed)) {
        memory_end_note(ERR_NO_MEMORY);
        return NULL;
    }
    // A growth by half keeps appending linear. The sum cannot overflow for an existing array.
    size_t wanted = *cap + *cap / 2;
    wanted = max_u64(wanted, FIRST_CAPACITY);
    wanted = max_u64(wanted, needed);
    // An object cannot be larger than PTRDIFF_MAX.
    if (__builtin_mul_overflow(wanted, item_bytes, &bytes) || bytes > PTRDIFF_MAX) {
        memory_end_note(ERR_NO_MEMORY);
        return NULL;
    }
    void *grown = realloc(items, bytes);
    if (grown == NULL) {
        memory_end_note(ERR_NO_MEMORY);
        return NULL;
    }
    *cap = wanted;
    return grown;
}

static int compare_u64(const void *left, const void *right)
{
    return order_u64(*(const uint64_t *)left, *(const uint64_t *)right);
}

void u64_vec_sort_numbers(struct u64_vec *v)
{
    u64_vec_sort(v, compare_u64);
}

bool u32_vec_has_any(const struct u32_vec *v)
{
    for (size_t i = 0; i < v->len; i++) {
        if (v->items[i] != 0) {
            return true;
        }
    }
    return false;
}

static int compare_u32(const void *left, const void *right)
{
    return order_u64(*(const uint32_t *)left, *(const uint32_t *)right);
}

void u32_vec_sort_once(struct u32_vec *v)
{
    size_t kept = 0;
    u32_vec_sort(v, compare_u32);
    for (size_t i = 0; i < v->len; i++) {
        if (kept == 0 || v->items[i] != v->items[kept - 1]) {
            v->items[kept++] = v->items[i];
        }
    }
    v->len = kept;
}
