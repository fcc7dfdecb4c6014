// SPDX-License-Identifier: MIT
// vec: a growable array of one type.
//
// DEFINE_VEC(span_vec, struct span) makes `struct span_vec` and these functions:
//   span_vec_push(&v, item)      appends one item
//   span_vec_add(&v, item)       the same, without a result: see memory_end.h
//   span_vec_reserve(&v, extra)  makes room for `extra` more items; pushing them then cannot fail
//   span_vec_resize(&v, len)     sets the length; new items are zero
//   span_vec_clear(&v)           removes the items, keeps the memory
//   span_vec_bytes(&v)           the size of its memory
//   span_vec_sort(&v, compare)   sorts the items, as qsort does
//   span_vec_sort_by(&v, compare, context)  sorts them, as qsort_r does
//   span_vec_release(&v)         frees the memory; accepts a zeroed vector and leaves one
//
// A zeroed vector is empty and valid. `items` is owned by the vector and moves when it grows, so
// keep indices, not pointers. Invariant: len <= cap. On failure (ERR_NO_MEMORY, which includes
// sizes that overflow) the vector is unchanged. Context: H; one thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

// Return `items` (may be NULL) moved to room for at least `len + extra` items of `item_bytes`, and
// set *cap. On failure return NULL and change nothing.
void *vec_grown(void *items, size_t *cap, size_t len, size_t extra, size_t item_bytes) MUST_USE;

// clang warns about unused inline functions in a .c file.
#define UNUSED __attribute__((unused))

// A type cannot be in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define DEFINE_VEC(name, type)                                                                 \
    struct name {                                                                              \
        type *items;                                                                           \
        size_t len;                                                                            \
        size_t cap;                                                                            \
    };                                                                                         \
    UNUSED static inline void name##_release(struct name *v)                                   \
    {                                                                                          \
        free(v->items);                                                                        \
        *v = (struct name){0};                                                                 \
    }                                                                                          \
    UNUSED static inline void name##_clear(struct name *v)                                     \
    {                                                                                          \
        v->len = 0;                                                                            \
    }                                                                                          \
    UNUSED static inline size_t name##_bytes(const struct name *v)                             \
    {                                                                                          \
        return v->cap * sizeof(type);                                                          \
    }                                                                                          \
    UNUSED MUST_USE static inline enum err name##_reserve(struct name *v, size_t extra)        \
    {                                                                                          \
        if (v->cap - v->len >= extra) {                                                        \
            return ERR_OK;                                                                     \
        }                                                                                      \
        type *grown = (type *)vec_grown(v->items, &v->cap, v->len, extra, sizeof(type));       \
        if (grown == NULL) {                                                                   \
            return ERR_NO_MEMORY;                                                              \
        }                                                                                      \
        v->items = grown;                                                                      \
        return ERR_OK;                                                                         \
    }                                                                                          \
    UNUSED MUST_USE static inline enum err name##_push(struct name *v, type item)              \
    {                                                                                          \
        TRY(name##_reserve(v, 1));                                                             \
        v->items[v->len++] = item;                                                             \
        return ERR_OK;                                                                         \
    }                                                                                          \
    UNUSED static inline void name##_add(struct name *v, type item)                            \
    {                                                                                          \
        (void)!name##_push(v, item); /* a failure is noted for the answer */                   \
    }                                                                                          \
    UNUSED MUST_USE static inline enum err name##_resize(struct name *v, size_t len)           \
    {                                                                                          \
        if (len > v->len) {                                                                    \
            TRY(name##_reserve(v, len - v->len));                                              \
            memset((void *)(v->items + v->len), 0, (len - v->len) * sizeof(type));             \
        }                                                                                      \
        v->len = len;                                                                          \
        return ERR_OK;                                                                         \
    }                                                                                          \
    UNUSED static inline void name##_sort(struct name *v,                                      \
                                          int (*compare)(const void *left, const void *right)) \
    {                                                                                          \
        if (v->len > 1) {                                                                      \
            qsort(v->items, v->len, sizeof(type), compare);                                    \
        }                                                                                      \
    }                                                                                          \
    UNUSED static inline void name##_sort_by(                                                  \
        struct name *v, int (*compare)(const void *left, const void *right, void *context),    \
        void *context)                                                                         \
    {                                                                                          \
        if (v->len > 1) {                                                                      \
            qsort_r(v->items, v->len, sizeof(type), compare, context);                         \
        }                                                                                      \
    }                                                                                          \
    struct name /* swallows the semicolon */
// NOLINTEND(bugprone-macro-parentheses)

DEFINE_VEC(u32_vec, uint32_t);
DEFINE_VEC(u64_vec, uint64_t);
DEFINE_VEC(flag_vec, uint8_t);

void u64_vec_sort_numbers(struct u64_vec *v);

// Whether a number is not 0.
bool u32_vec_has_any(const struct u32_vec *v);

// Sort the numbers, and keep each once.
void u32_vec_sort_once(struct u32_vec *v);
