// SPDX-License-Identifier: MIT
// cohort_table: see the header.
#include "recorder/cohort_table.h"

#include <stdlib.h>

#include "base/hash.h"

enum {
    FAR_AHEAD = 16,
    NEAR_AHEAD = 8,
};

void cohort_table_release(struct cohort_table *table)
{
    rec_cohort_vec_release(&table->cohorts);
    id_index_release(&table->index);
    free(table->notes);
    table->notes = NULL;
    table->note_count = 0;
}

static uint64_t cohort_hash(const void *cohorts, uint32_t id)
{
    const struct rec_cohort *cohort = (const struct rec_cohort *)cohorts + id;
    return hash_mix((uint64_t)cohort->row << 24 ^ (uint64_t)cohort->born_slice << 12 ^
                    cohort->freed_slice);
}

static bool is_same(const struct rec_cohort *a, const struct rec_cohort *b)
{
    return a->row == b->row && a->born_slice == b->born_slice && a->freed_slice == b->freed_slice;
}

// Adds the blocks and bytes of `cohort` to the one of the same place.
static enum err add(struct cohort_table *table, const struct rec_cohort *cohort)
{
    struct id_index *index = &table->index;
    const uint64_t hash = cohort_hash(cohort, 0);
    uint32_t id;
    for (size_t at = id_index_start(index, hash); (id = id_index_at(index, at)) != ID_NONE;
         at = id_index_next(index, at)) {
        struct rec_cohort *known = table->cohorts.items + id;
        if (is_same(known, cohort)) {
            const uint64_t blocks = (uint64_t)known->blocks + cohort->blocks;
            known->blocks = blocks < UINT32_MAX ? (uint32_t)blocks : UINT32_MAX;
            known->bytes += cohort->bytes;
            return ERR_OK;
        }
    }
    if (table->cohorts.len >= ID_NONE) {
        return ERR_LIMIT;
    }
    id = (uint32_t)table->cohorts.len;
    TRY(rec_cohort_vec_reserve(&table->cohorts, 1));
    TRY(id_index_add(index, hash, id, cohort_hash, table->cohorts.items));
    table->cohorts.items[table->cohorts.len++] = *cohort;
    return ERR_OK;
}

static struct rec_cohort cohort_of(const struct cohort_note *note)
{
    return (struct rec_cohort){.row = note->row,
                               .born_slice = note->born_slice,
                               .freed_slice = note->freed_slice,
                               .blocks = 1,
                               .bytes = note->bytes};
}

// Fetches the place where the index is searched for `note` and, if `is_near`, what it found there.
static void prefetch(const struct cohort_table *table, const struct cohort_note *note, bool is_near)
{
    const struct rec_cohort cohort = cohort_of(note);
    const size_t at = id_index_start(&table->index, cohort_hash(&cohort, 0));
    if (!is_near) {
        __builtin_prefetch(table->index.slots + at);
    } else if (table->index.slots[at] != ID_NONE) {
        __builtin_prefetch(table->cohorts.items + table->index.slots[at], 1);
    }
}

enum err cohort_table_count(struct cohort_table *table)
{
    if (table->notes == NULL) {
        table->notes = malloc(COHORT_NOTES_MAX * sizeof(*table->notes));
        return table->notes != NULL ? ERR_OK : ERR_NO_MEMORY;
    }
    const uint32_t count = table->note_count;
    table->note_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i + FAR_AHEAD < count && table->index.slot_count > 0) {
            prefetch(table, table->notes + i + FAR_AHEAD, false);
            prefetch(table, table->notes + i + NEAR_AHEAD, true);
        }
        const struct rec_cohort cohort = cohort_of(table->notes + i);
        TRY(add(table, &cohort));
    }
    return ERR_OK;
}

enum err cohort_table_add_more(struct cohort_table *table, const struct rec_cohort *cohort)
{
    return add(table, cohort);
}

enum err cohort_table_merge_slices(struct cohort_table *table, uint32_t shift)
{
    CLEANUP(cohort_table_release) struct cohort_table merged = {0};
    TRY(cohort_table_count(table));
    for (size_t i = 0; i < table->cohorts.len; i++) {
        struct rec_cohort cohort = table->cohorts.items[i];
        cohort.born_slice >>= shift;
        cohort.freed_slice >>= shift;
        if (cohort.born_slice != cohort.freed_slice) {
            TRY(add(&merged, &cohort));
        }
    }
    const struct cohort_table old = *table;
    *table = merged;
    merged = old; // to be released
    return ERR_OK;
}

static int compare(const void *left, const void *right)
{
    const struct rec_cohort *a = left;
    const struct rec_cohort *b = right;
    if (a->row != b->row) {
        return a->row < b->row ? -1 : 1;
    }
    if (a->born_slice != b->born_slice) {
        return a->born_slice < b->born_slice ? -1 : 1;
    }
    return (a->freed_slice > b->freed_slice) - (a->freed_slice < b->freed_slice);
}

enum err cohort_table_collect(struct cohort_table *table, struct rec_cohort_vec *out)
{
    TRY(cohort_table_count(table));
    const size_t begin = out->len;
    for (size_t i = 0; i < table->cohorts.len; i++) {
        TRY(rec_cohort_vec_push(out, table->cohorts.items[i]));
    }
    if (table->cohorts.len > 1) {
        qsort(out->items + begin, out->len - begin, sizeof(*out->items), compare);
    }
    return ERR_OK;
}
