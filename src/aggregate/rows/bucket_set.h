// SPDX-License-Identifier: MIT
// bucket_set: a sparse histogram of one row.
//
// Most rows allocate one size only. So a histogram starts as the number of its one bucket; its
// counts are those of the row, and are stored nowhere else. The second bucket makes it a small hash
// table with memory of its own. The hash of a bucket is its number: the sizes and lifetimes of one
// stack are mostly neighbours, so nearly all are at their first place. BUCKET_UNKNOWN is the bucket
// of events without a known value; it is counted and never collected.
// Memory: 8 bytes; with two buckets or more 64, doubled whenever all places but one are in use.
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

#define BUCKET_TAG_BITS 8

#define BUCKET_UNKNOWN REC_BUCKET_COUNT

// The count includes the bucket's tag, its number plus 1. So one cache line and one comparison
// verify the place. Zeroed: a free place.
struct bucket_count {
    uint64_t tagged; // count << BUCKET_TAG_BITS | tag
    uint64_t bytes;
};
_Static_assert(BUCKET_UNKNOWN + 1 < (1u << BUCKET_TAG_BITS) - 1, "256 places, one of them free");

// The tag of the only bucket, times 2. Or the address of a table, a multiple of 16, plus twice the
// logarithm of its size divided by BUCKET_PLACES_MIN, plus 1. 0: no events yet.
struct bucket_set {
    uintptr_t tagged;
};

#define BUCKET_PLACES_MIN 4u // at most 256 in all

static inline uintptr_t bucket_set_only(uint32_t bucket)
{
    return (uintptr_t)(bucket + 1) << 1;
}

static inline bool bucket_set_has_table(const struct bucket_set *set)
{
    return (set->tagged & 1) != 0;
}

// Return the table, owned by the set, which has one.
static inline struct bucket_count *bucket_set_known_table(const struct bucket_set *set)
{
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it was made from one
    return (struct bucket_count *)(set->tagged & ~(uintptr_t)15);
}

// Return the table, owned by the set; NULL if there is none.
static inline struct bucket_count *bucket_set_table(const struct bucket_set *set)
{
    return bucket_set_has_table(set) ? bucket_set_known_table(set) : NULL;
}

// Return the number of places of the table.
static inline uint32_t bucket_set_places(const struct bucket_set *set)
{
    return BUCKET_PLACES_MIN << (set->tagged >> 1 & 7);
}

// Return the first place of `bucket` in the table of the set; it is most likely there.
static inline struct bucket_count *
bucket_set_first(const struct bucket_set *set, struct bucket_count *table, uint32_t bucket)
{
    return table + (bucket & (bucket_set_places(set) - 1));
}

// Return the bucket of a place that is in use.
static inline uint32_t bucket_count_bucket(const struct bucket_count *count)
{
    return (count->tagged & ((1u << BUCKET_TAG_BITS) - 1)) - 1;
}

static inline bool bucket_count_is_of(const struct bucket_count *count, uint32_t bucket)
{
    return (count->tagged & ((1u << BUCKET_TAG_BITS) - 1)) == bucket + 1;
}

DEFINE_VEC(rec_bucket_vec, struct rec_bucket);

// The slow path of bucket_set_add: the bucket is new, or not at its first place.
enum err bucket_set_add_other(struct bucket_set *set,
                              uint32_t bucket,
                              uint64_t bytes,
                              uint64_t old_count,
                              uint64_t old_bytes) MUST_USE;

// Count one event of `bytes` in `bucket`. `old_count` and `old_bytes`: the row's sums before it.
static inline MUST_USE enum err bucket_set_add(
    struct bucket_set *set, uint32_t bucket, uint64_t bytes, uint64_t old_count, uint64_t old_bytes)
{
    if (set->tagged == bucket_set_only(bucket)) {
        return ERR_OK;
    }
    if (LIKELY(bucket_set_has_table(set))) {
        struct bucket_count *table = bucket_set_known_table(set);
        struct bucket_count *count = bucket_set_first(set, table, bucket);
        if (LIKELY(bucket_count_is_of(count, bucket))) {
            count->tagged += 1u << BUCKET_TAG_BITS;
            count->bytes += bytes;
            return ERR_OK;
        }
    }
    return bucket_set_add_other(set, bucket, bytes, old_count, old_bytes);
}

// Prefetch the count of `bucket`. Affects only speed.
static inline void bucket_set_prefetch(const struct bucket_set *set, uint32_t bucket)
{
    struct bucket_count *table = bucket_set_table(set);
    if (table != NULL) {
        __builtin_prefetch(bucket_set_first(set, table, bucket), 1);
    }
}

// Count `count` more events of `bytes` in all, in the bucket of the latest event.
void bucket_set_add_more(struct bucket_set *set, uint32_t bucket, uint64_t count, uint64_t bytes);

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
