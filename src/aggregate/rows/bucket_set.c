// SPDX-License-Identifier: MIT
// bucket_set: see the header.
#include "aggregate/rows/bucket_set.h"

#include <stdlib.h>
#include <string.h>

enum {
    FIRST_CAP = 6,
};

static size_t array_bytes(uint32_t cap)
{
    return sizeof(struct bucket_array) + cap * (sizeof(struct bucket_count) + sizeof(uint8_t));
}

static struct bucket_array *array_new(uint32_t cap)
{
    struct bucket_array *array = calloc(1, array_bytes(cap));
    if (array != NULL) {
        array->cap = cap;
    }
    return array;
}

static void note_place(struct bucket_array *array, uint32_t bucket, uint32_t index)
{
    array->places[bucket % BUCKET_PLACES] = (uint8_t)index;
}

static void array_put(struct bucket_array *array, uint32_t bucket, uint64_t count, uint64_t bytes)
{
    note_place(array, bucket, array->used);
    bucket_array_numbers(array)[array->used] = (uint8_t)bucket;
    array->counts[array->used] =
        (struct bucket_count){.tagged = count << BUCKET_TAG_BITS | bucket, .bytes = bytes};
    array->used++;
}

static void set_array(struct bucket_set *set, struct bucket_array *array)
{
    set->tagged = (uintptr_t)array; // malloc's addresses are even
}

static enum err array_grow(struct bucket_set *set)
{
    struct bucket_array *old = bucket_set_array(set);
    uint32_t cap = old->cap * 2 < BUCKET_UNKNOWN ? old->cap * 2 : BUCKET_UNKNOWN + 1;
    struct bucket_array *grown = array_new(cap);
    if (grown == NULL) {
        return ERR_NO_MEMORY;
    }
    memcpy(grown->counts, old->counts, old->used * sizeof(old->counts[0]));
    memcpy(bucket_array_numbers(grown), bucket_array_numbers(old), old->used);
    memcpy(grown->places, old->places, sizeof(old->places));
    grown->used = old->used;
    free(old);
    set_array(set, grown);
    return ERR_OK;
}

enum err bucket_set_add_other(
    struct bucket_set *set, uint32_t bucket, uint64_t bytes, uint64_t old_count, uint64_t old_bytes)
{
    if (bucket_set_is_only(set)) {
        struct bucket_array *first = array_new(FIRST_CAP);
        if (first == NULL) {
            return ERR_NO_MEMORY;
        }
        array_put(first, (uint32_t)(set->tagged >> 1), old_count, old_bytes);
        set_array(set, first);
    }
    struct bucket_array *array = bucket_set_array(set);
    const uint8_t *buckets = bucket_array_numbers(array);
    const uint8_t *found = memchr(buckets, (int)bucket, array->used);
    if (found != NULL) {
        struct bucket_count *count = array->counts + (found - buckets);
        note_place(array, bucket, (uint32_t)(found - buckets));
        count->tagged += 1u << BUCKET_TAG_BITS;
        count->bytes += bytes;
        return ERR_OK;
    }
    if (array->used == array->cap) {
        TRY(array_grow(set));
        array = bucket_set_array(set);
    }
    array_put(array, bucket, 1, bytes);
    return ERR_OK;
}

enum err bucket_set_join(struct bucket_set *into,
                         uint64_t into_count,
                         uint64_t into_bytes,
                         const struct bucket_set *from,
                         uint64_t from_count,
                         uint64_t from_bytes)
{
    struct bucket_array *array = bucket_set_array(from);
    const uint32_t used = array != NULL ? array->used : from_count > 0;
    for (uint32_t i = 0; i < used; i++) {
        const uint32_t bucket =
            array != NULL ? bucket_array_numbers(array)[i] : (uint32_t)(from->tagged >> 1);
        const uint64_t count =
            array != NULL ? array->counts[i].tagged >> BUCKET_TAG_BITS : from_count;
        const uint64_t bytes = array != NULL ? array->counts[i].bytes : from_bytes;
        TRY(bucket_set_add(into, bucket, bytes, into_count, into_bytes));
        bucket_set_add_more(into, bucket, count - 1, 0);
        into_count += count;
        into_bytes += bytes;
    }
    return ERR_OK;
}

size_t bucket_set_count(const struct bucket_set *set, uint64_t count)
{
    struct bucket_array *array = bucket_set_array(set);
    if (array == NULL) {
        return count > 0 && set->tagged != bucket_set_only(BUCKET_UNKNOWN);
    }
    const bool has_unknown =
        memchr(bucket_array_numbers(array), BUCKET_UNKNOWN, array->used) != NULL;
    return array->used - has_unknown;
}

size_t bucket_set_bytes(const struct bucket_set *set)
{
    const struct bucket_array *array = bucket_set_array(set);
    return array != NULL ? array_bytes(array->cap) : 0;
}

enum err bucket_set_collect(const struct bucket_set *set,
                            uint32_t row,
                            uint64_t count,
                            uint64_t bytes,
                            struct rec_bucket_vec *out)
{
    if (bucket_set_count(set, count) == 0) {
        return ERR_OK;
    }
    struct bucket_array *array = bucket_set_array(set);
    if (array == NULL) {
        return rec_bucket_vec_push(out, (struct rec_bucket){.row = row,
                                                            .bucket = (uint32_t)(set->tagged >> 1),
                                                            .count = count,
                                                            .bytes = bytes});
    }
    const uint8_t *buckets = bucket_array_numbers(array);
    TRY(rec_bucket_vec_reserve(out, array->used));
    struct rec_bucket *sorted = out->items + out->len;
    for (uint32_t i = 0; i < array->used; i++) { // they are few
        uint32_t at = i;
        for (; at > 0 && sorted[at - 1].bucket > buckets[i]; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at].row = row;
        sorted[at].bucket = buckets[i];
        sorted[at].count = array->counts[i].tagged >> BUCKET_TAG_BITS;
        sorted[at].bytes = array->counts[i].bytes;
    }
    out->len += bucket_set_count(set, count); // BUCKET_UNKNOWN is the last
    return ERR_OK;
}

void bucket_set_release(struct bucket_set *set)
{
    free(bucket_set_array(set));
    set->tagged = 0;
}
