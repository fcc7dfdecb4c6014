// SPDX-License-Identifier: MIT
// bucket_set: a sparse histogram of one row.
//
// Most rows allocate one size only. So a histogram starts as the number of its one bucket; its
// counts are those of the row, and are stored nowhere else. The second bucket makes it an array
// with memory of its own: counts, and the numbers of their buckets, a byte each. BUCKET_UNKNOWN is
// the bucket of events without a known value; it is counted and never collected.
// Memory: 8 bytes; with two buckets or more 48 bytes, 17 a bucket, and room for growth.
// Context: H, one thread.
// Failure: ERR_NO_MEMORY; the histogram then lacks the event.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

// Size of the cache of bucket positions, indexed by the bucket number modulo BUCKET_PLACES. The
// sizes and lifetimes of one stack are mostly neighbours; up to ten octaves of them need no search.
#define BUCKET_PLACES 40u

#define BUCKET_TAG_BITS 8

#define BUCKET_UNKNOWN REC_BUCKET_COUNT

// The count includes the bucket's number, so one cache line both verifies the position and takes
// the count.
struct bucket_count {
    uint64_t tagged; // count << BUCKET_TAG_BITS | number
    uint64_t bytes;
};

// A header before `cap` bucket_counts and `cap` bytes with the numbers of the buckets.
struct bucket_array {
    uint32_t used; // at least 1
    uint32_t cap;
    uint8_t places[BUCKET_PLACES]; // indices below `used`; 0 if unknown
    struct bucket_count counts[];
};
_Static_assert(offsetof(struct bucket_array, counts) % sizeof(struct bucket_count) == 0,
               "no count lies in two cache lines");

static inline uint8_t *bucket_array_numbers(struct bucket_array *array)
{
    return (uint8_t *)(array->counts + array->cap);
}
_Static_assert(BUCKET_UNKNOWN < 1u << BUCKET_TAG_BITS, "a bucket is a byte, and so is an index");

// Return the count that probably belongs to `bucket`.
static inline struct bucket_count *bucket_array_guess(struct bucket_array *array, uint32_t bucket)
{
    return array->counts + array->places[bucket % BUCKET_PLACES];
}

// The address of an array (even), or one bucket's number (times 2, plus 1). 0: no events yet.
struct bucket_set {
    uintptr_t tagged;
};

static inline uintptr_t bucket_set_only(uint32_t bucket)
{
    return (uintptr_t)bucket << 1 | 1;
}

static inline bool bucket_set_is_only(const struct bucket_set *set)
{
    return (set->tagged & 1) != 0;
}

// Return the array, owned by the set; NULL if there is none.
static inline struct bucket_array *bucket_set_array(const struct bucket_set *set)
{
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it was made from one
    return bucket_set_is_only(set) ? NULL : (struct bucket_array *)set->tagged;
}

// Prefetch what bucket_set_collect will read.
static inline void bucket_set_fetch(const struct bucket_set *set)
{
    const struct bucket_array *array = bucket_set_array(set);
    if (array != NULL) {
        __builtin_prefetch(array);
        __builtin_prefetch(array->counts + 4); // most sets have only these two lines
    }
}

DEFINE_VEC(rec_bucket_vec, struct rec_bucket);

// The slow path of bucket_set_add: the bucket is not at its cached position.
enum err bucket_set_add_other(struct bucket_set *set,
                              uint32_t bucket,
                              uint64_t bytes,
                              uint64_t old_count,
                              uint64_t old_bytes) MUST_USE;

// Count one event of `bytes` in `bucket`. `old_count` and `old_bytes`: the row's sums before it.
static inline MUST_USE enum err bucket_set_add(
    struct bucket_set *set, uint32_t bucket, uint64_t bytes, uint64_t old_count, uint64_t old_bytes)
{
    const uintptr_t only = bucket_set_only(bucket);
    if (old_count == 0) {
        set->tagged = only;
        return ERR_OK;
    }
    if (set->tagged == only) {
        return ERR_OK;
    }
    struct bucket_array *array = bucket_set_array(set);
    if (LIKELY(array != NULL)) {
        struct bucket_count *count = bucket_array_guess(array, bucket);
        if (LIKELY((count->tagged & ((1u << BUCKET_TAG_BITS) - 1)) == bucket)) {
            count->tagged += 1u << BUCKET_TAG_BITS;
            count->bytes += bytes;
            return ERR_OK;
        }
    }
    return bucket_set_add_other(set, bucket, bytes, old_count, old_bytes);
}

// Prefetch the cached position of `bucket`. Affects only speed.
static inline void bucket_set_prefetch_place(const struct bucket_set *set, uint32_t bucket)
{
    const struct bucket_array *array = bucket_set_array(set);
    if (array != NULL) {
        __builtin_prefetch(array->places + bucket % BUCKET_PLACES, 1);
    }
}

// Prefetch the count of `bucket`, after its position has been fetched.
static inline void bucket_set_prefetch(const struct bucket_set *set, uint32_t bucket)
{
    struct bucket_array *array = bucket_set_array(set);
    if (array != NULL) {
        __builtin_prefetch(bucket_array_guess(array, bucket), 1);
    }
}

// Count `count` more events of `bytes` in all, in the bucket of the latest event.
static inline void
bucket_set_add_more(struct bucket_set *set, uint32_t bucket, uint64_t count, uint64_t bytes)
{
    struct bucket_array *array = bucket_set_array(set);
    if (array != NULL) { // else the only bucket, which is not stored
        struct bucket_count *last = bucket_array_guess(array, bucket);
        last->tagged += count << BUCKET_TAG_BITS;
        last->bytes += bytes;
    }
}

// Add the histogram `from` of a row with `from_count` events of `from_bytes` to that of the row
// with `into_count` and `into_bytes`.
enum err bucket_set_join(struct bucket_set *into,
                         uint64_t into_count,
                         uint64_t into_bytes,
                         const struct bucket_set *from,
                         uint64_t from_count,
                         uint64_t from_bytes) MUST_USE;

// Return the number of buckets that bucket_set_collect appends for a row with `count` events.
size_t bucket_set_count(const struct bucket_set *set, uint64_t count);

// Return the bytes of memory besides the set itself.
size_t bucket_set_bytes(const struct bucket_set *set);

// Append the histogram of `row`, whose sums are `count` and `bytes`, to `out`, by ascending bucket.
enum err bucket_set_collect(const struct bucket_set *set,
                            uint32_t row,
                            uint64_t count,
                            uint64_t bytes,
                            struct rec_bucket_vec *out) MUST_USE;

void bucket_set_release(struct bucket_set *set);
