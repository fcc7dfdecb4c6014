// SPDX-License-Identifier: MIT
#include "aggregate/rows/bucket_set.h"

#include <stdlib.h>

// Return the place of `bucket`, or a free one. One is always free.
static struct bucket_count *find_place(const struct bucket_set *set, uint32_t bucket)
{
    struct bucket_count *table = bucket_set_table(set);
    const uint32_t mask = bucket_set_places(set) - 1;
    uint32_t at = bucket & mask;
    while (table[at].tagged != 0 && !bucket_count_is_of(table + at, bucket)) {
        at = (at + 1) & mask;
    }
    return table + at;
}

static uint32_t used_places(const struct bucket_set *set)
{
    const struct bucket_count *table = bucket_set_table(set);
    uint32_t used = 0;
    for (uint32_t i = 0; table != NULL && i < bucket_set_places(set); i++) {
        used += table[i].tagged != 0;
    }
    return used;
}

// Make *set an empty table of BUCKET_PLACES_MIN << `doublings` places.
static enum err table_new(struct bucket_set *set, uintptr_t doublings)
{
    const size_t places = (size_t)BUCKET_PLACES_MIN << doublings;
    struct bucket_count *table = calloc(places, sizeof(*table)); // at a multiple of 16
    if (table == NULL) {
        return ERR_NO_MEMORY;
    }
    set->tagged = (uintptr_t)table | doublings << 1 | 1;
    return ERR_OK;
}

static enum err table_grow(struct bucket_set *set)
{
    struct bucket_set old = *set;
    const struct bucket_count *table = bucket_set_table(&old);
    TRY(table_new(set, (old.tagged >> 1 & 7) + 1));
    for (uint32_t i = 0; i < bucket_set_places(&old); i++) {
        if (table[i].tagged != 0) {
            *find_place(set, bucket_count_bucket(table + i)) = table[i];
        }
    }
    bucket_set_release(&old);
    return ERR_OK;
}

// Return the place that the only bucket would have in a table.
static struct bucket_count only_count(const struct bucket_set *set, uint64_t count, uint64_t bytes)
{
    return (struct bucket_count){.tagged = count << BUCKET_TAG_BITS | set->tagged >> 1,
                                 .bytes = bytes};
}

enum err bucket_set_add_other(
    struct bucket_set *set, uint32_t bucket, uint64_t bytes, uint64_t old_count, uint64_t old_bytes)
{
    if (set->tagged == 0) {
        set->tagged = bucket_set_only(bucket);
        return ERR_OK;
    }
    if (!bucket_set_has_table(set)) {
        const struct bucket_count only = only_count(set, old_count, old_bytes);
        TRY(table_new(set, 0));
        *find_place(set, bucket_count_bucket(&only)) = only;
    }
    struct bucket_count *place = find_place(set, bucket);
    if (place->tagged == 0 && used_places(set) + 1 == bucket_set_places(set)) {
        TRY(table_grow(set));
        place = find_place(set, bucket);
    }
    place->tagged = (place->tagged | (bucket + 1)) + (1u << BUCKET_TAG_BITS);
    place->bytes += bytes;
    return ERR_OK;
}

void bucket_set_add_more(struct bucket_set *set, uint32_t bucket, uint64_t count, uint64_t bytes)
{
    if (bucket_set_table(set) != NULL) { // else the only bucket, which is not stored
        struct bucket_count *place = find_place(set, bucket);
        place->tagged += count << BUCKET_TAG_BITS;
        place->bytes += bytes;
    }
}

enum err bucket_set_join(struct bucket_set *into,
                         uint64_t into_count,
                         uint64_t into_bytes,
                         const struct bucket_set *from,
                         uint64_t from_count,
                         uint64_t from_bytes)
{
    const struct bucket_count *table = bucket_set_table(from);
    const uint32_t places = table != NULL ? bucket_set_places(from) : from_count > 0;
    for (uint32_t i = 0; i < places; i++) {
        const struct bucket_count only = only_count(from, from_count, from_bytes);
        const struct bucket_count *added = table != NULL ? table + i : &only;
        const uint64_t count = added->tagged >> BUCKET_TAG_BITS;
        const uint32_t bucket = bucket_count_bucket(added);
        if (count > 0) {
            TRY(bucket_set_add(into, bucket, added->bytes, into_count, into_bytes));
            bucket_set_add_more(into, bucket, count - 1, 0);
            into_count += count;
            into_bytes += added->bytes;
        }
    }
    return ERR_OK;
}

size_t bucket_set_count(const struct bucket_set *set, uint64_t count)
{
    if (bucket_set_table(set) == NULL) {
        return count > 0 && set->tagged != bucket_set_only(BUCKET_UNKNOWN);
    }
    const bool has_unknown = find_place(set, BUCKET_UNKNOWN)->tagged != 0;
    return used_places(set) - has_unknown;
}

size_t bucket_set_bytes(const struct bucket_set *set)
{
    return bucket_set_table(set) != NULL ? bucket_set_places(set) * sizeof(struct bucket_count) : 0;
}

enum err bucket_set_collect(const struct bucket_set *set,
                            uint32_t row,
                            uint64_t count,
                            uint64_t bytes,
                            struct rec_bucket_vec *out)
{
    const struct bucket_count *table = bucket_set_table(set);
    if (table == NULL) {
        const struct bucket_count place = only_count(set, count, bytes);
        const struct rec_bucket only = {
            .row = row, .bucket = bucket_count_bucket(&place), .count = count, .bytes = bytes};
        return bucket_set_count(set, count) > 0 ? rec_bucket_vec_push(out, only) : ERR_OK;
    }
    TRY(rec_bucket_vec_reserve(out, bucket_set_places(set)));
    struct rec_bucket *sorted = out->items + out->len;
    size_t used = 0;
    for (uint32_t i = 0; i < bucket_set_places(set); i++) { // they are few
        const uint32_t bucket = bucket_count_bucket(table + i);
        size_t at = used;
        if (table[i].tagged == 0 || bucket == BUCKET_UNKNOWN) {
            continue;
        }
        for (; at > 0 && sorted[at - 1].bucket > bucket; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = (struct rec_bucket){.row = row,
                                         .bucket = bucket,
                                         .count = table[i].tagged >> BUCKET_TAG_BITS,
                                         .bytes = table[i].bytes};
        used++;
    }
    out->len += used;
    return ERR_OK;
}

void bucket_set_release(struct bucket_set *set)
{
    free(bucket_set_table(set));
    set->tagged = 0;
}
