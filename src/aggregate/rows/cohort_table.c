// SPDX-License-Identifier: MIT
#include "aggregate/rows/cohort_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/order.h"

#define SLOT_FREE UINT64_MAX

enum {
    SLOTS_MIN = 64,
    TOGETHER = 64, // notes that are counted together
};

void cohort_table_release(struct cohort_table *table)
{
    rec_cohort_vec_release(&table->cohorts);
    free(table->slots);
    free(table->notes);
    *table = (struct cohort_table){0};
}

size_t cohort_table_bytes(const struct cohort_table *table)
{
    return table->cohorts.cap * sizeof(struct rec_cohort) +
           table->slot_cap * sizeof(*table->slots) +
           (table->notes != NULL ? COHORT_NOTES_MAX * sizeof(*table->notes) : 0);
}

// The hash does not depend on freed_slice: the index has only one at a time.
static uint64_t hash_of(uint32_t row, uint32_t born_slice)
{
    return hash_mix((uint64_t)row << 32 | born_slice);
}

static bool is_same(const struct rec_cohort *a, const struct rec_cohort *b)
{
    return a->row == b->row && a->born_slice == b->born_slice && a->freed_slice == b->freed_slice;
}

static void forget_slots(struct cohort_table *table)
{
    memset(table->slots, 0xff, table->slot_count * sizeof(*table->slots)); // SLOT_FREE everywhere
}

// Return the slot of a cohort whose hash agrees with `hash` in its high half, or a free one. The
// search begins at `at`.
static size_t find_slot(const struct cohort_table *table, uint64_t hash, size_t at)
{
    const size_t mask = table->slot_count - 1;
    at &= mask;
    while (table->slots[at] != SLOT_FREE && table->slots[at] >> 32 != hash >> 32) {
        at = (at + 1) & mask;
    }
    return at;
}

static void index_last(struct cohort_table *table, uint64_t hash, size_t position)
{
    const size_t mask = table->slot_count - 1;
    size_t at = hash & mask;
    while (table->slots[at] != SLOT_FREE) {
        at = (at + 1) & mask;
    }
    table->slots[at] = hash >> 32 << 32 | position;
}

static enum err grow_index(struct cohort_table *table)
{
    const size_t slot_count = table->slot_count == 0 ? SLOTS_MIN : table->slot_count * 2;
    if (slot_count > table->slot_cap) {
        uint64_t *slots = realloc(table->slots, slot_count * sizeof(*slots));
        if (slots == NULL) {
            return ERR_NO_MEMORY;
        }
        table->slots = slots;
        table->slot_cap = slot_count;
    }
    table->slot_count = slot_count;
    forget_slots(table);
    for (size_t i = table->first; i < table->cohorts.len; i++) {
        const struct rec_cohort *cohort = table->cohorts.items + i;
        index_last(table, hash_of(cohort->row, cohort->born_slice), i);
    }
    return ERR_OK;
}

// Empty the index, whose cohorts are complete, for another slice. An index that was much too large
// shrinks, since it is cleared each time.
static void begin_slice(struct cohort_table *table)
{
    const size_t used = table->cohorts.len - table->first;
    if (table->slot_count > SLOTS_MIN && used * 8 < table->slot_count) {
        table->slot_count /= 2;
    }
    table->first = table->cohorts.len;
    forget_slots(table);
}

static enum err index_reserve(struct cohort_table *table, size_t count)
{
    while ((table->cohorts.len - table->first + count) * 8 > table->slot_count * 7) {
        TRY(grow_index(table));
    }
    return ERR_OK;
}

// Make the index ready for freed_slice, with room for `count` more cohorts.
static enum err make_ready(struct cohort_table *table, uint32_t freed_slice, size_t count)
{
    if (table->first < table->cohorts.len &&
        table->cohorts.items[table->first].freed_slice != freed_slice) {
        begin_slice(table);
    }
    TRY(index_reserve(table, count));
    return table->cohorts.len + count <= UINT32_MAX ? rec_cohort_vec_reserve(&table->cohorts, count)
                                                    : ERR_LIMIT;
}

// Add the blocks and bytes of `cohort`, whose hash is `hash`, to the cohort of the same key. The
// table is ready for it.
static void add_ready(struct cohort_table *table, const struct rec_cohort *cohort, uint64_t hash)
{
    size_t at = find_slot(table, hash, hash);
    for (; table->slots[at] != SLOT_FREE; at = find_slot(table, hash, at + 1)) {
        struct rec_cohort *known = table->cohorts.items + (uint32_t)table->slots[at];
        if (LIKELY(is_same(known, cohort))) {
            const uint64_t blocks = (uint64_t)known->blocks + cohort->blocks;
            known->blocks = blocks < UINT32_MAX ? (uint32_t)blocks : UINT32_MAX;
            known->bytes += cohort->bytes;
            return;
        }
    }
    table->slots[at] = hash >> 32 << 32 | table->cohorts.len;
    table->cohorts.items[table->cohorts.len++] = *cohort;
}

// Add `count` cohorts, at most TOGETHER and all of one freed_slice. Prefetch their index slots for
// all of them, then the cohorts, and only then read them.
static enum err
add_together(struct cohort_table *table, const struct rec_cohort *cohorts, uint32_t count)
{
    uint64_t hashes[TOGETHER];
    TRY(make_ready(table, cohorts->freed_slice, count));
    for (uint32_t i = 0; i < count; i++) {
        hashes[i] = hash_of(cohorts[i].row, cohorts[i].born_slice);
        __builtin_prefetch(table->slots + (hashes[i] & (table->slot_count - 1)));
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t slot = table->slots[find_slot(table, hashes[i], hashes[i])];
        const size_t position = slot != SLOT_FREE ? (uint32_t)slot : table->cohorts.len;
        __builtin_prefetch(table->cohorts.items + position, 1);
    }
    for (uint32_t i = 0; i < count; i++) {
        add_ready(table, cohorts + i, hashes[i]);
    }
    return ERR_OK;
}

// Cohorts to add, collected until they are enough.
struct batch {
    struct cohort_table *table;
    uint32_t count;
    struct rec_cohort cohorts[TOGETHER];
};

static enum err batch_flush(struct batch *batch)
{
    const uint32_t count = batch->count;
    batch->count = 0;
    return count > 0 ? add_together(batch->table, batch->cohorts, count) : ERR_OK;
}

static inline enum err batch_add(struct batch *batch, struct rec_cohort cohort)
{
    if (batch->count == TOGETHER ||
        (batch->count > 0 && batch->cohorts[0].freed_slice != cohort.freed_slice)) {
        TRY(batch_flush(batch));
    }
    batch->cohorts[batch->count++] = cohort;
    return ERR_OK;
}

enum err cohort_table_count(struct cohort_table *table)
{
    if (table->notes == NULL) {
        table->notes = malloc(COHORT_NOTES_MAX * sizeof(*table->notes));
        return table->notes != NULL ? ERR_OK : ERR_NO_MEMORY;
    }
    struct batch batch = {.table = table};
    const uint32_t count = table->note_count;
    table->note_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct cohort_note *note = table->notes + i;
        TRY(batch_add(&batch, (struct rec_cohort){.row = note->row,
                                                  .born_slice = note->born_slice,
                                                  .freed_slice = note->freed_slice,
                                                  .blocks = 1,
                                                  .bytes = note->bytes}));
    }
    return batch_flush(&batch);
}

enum err cohort_table_add_more(struct cohort_table *table, const struct rec_cohort *cohort)
{
    // Notes of an earlier slice come first.
    if (table->note_count > 0 && table->notes[0].freed_slice != cohort->freed_slice) {
        TRY(cohort_table_count(table));
    }
    return add_together(table, cohort, 1);
}

// Return the largest number of cohorts in one slice after a merge.
static size_t largest_group(const struct cohort_table *table, uint32_t shift)
{
    const struct rec_cohort *cohorts = table->cohorts.items;
    size_t largest = 0;
    for (size_t i = 0, begin = 0; i < table->cohorts.len; i++) {
        begin = cohorts[i].freed_slice >> shift == cohorts[begin].freed_slice >> shift ? begin : i;
        largest = i + 1 - begin > largest ? i + 1 - begin : largest;
    }
    return largest;
}

// Count all cohorts anew: row r becomes rows[r] unless `rows` is NULL, slice s becomes s >> shift.
static enum err rewrite_table(struct cohort_table *table, const uint32_t *rows, uint32_t shift)
{
    TRY(cohort_table_count(table));
    struct batch batch = {.table = table};
    const size_t count = table->cohorts.len;
    if (count == 0) {
        return ERR_OK;
    }
    // In place: there are never more cohorts than have been read. The index is large enough from
    // the beginning, so nothing can fail half-way.
    table->first = count;
    TRY(index_reserve(table, largest_group(table, shift)));
    table->first = 0;
    table->cohorts.len = 0;
    forget_slots(table);
    for (size_t i = 0; i < count; i++) {
        struct rec_cohort cohort = table->cohorts.items[i];
        cohort.row = rows != NULL ? rows[cohort.row] : cohort.row;
        cohort.born_slice >>= shift;
        cohort.freed_slice >>= shift;
        if (cohort.born_slice != cohort.freed_slice) {
            TRY(batch_add(&batch, cohort));
        }
    }
    return batch_flush(&batch);
}

enum err cohort_table_merge_slices(struct cohort_table *table, uint32_t shift)
{
    return rewrite_table(table, NULL, shift);
}

enum err cohort_table_renumber(struct cohort_table *table, const uint32_t *rows)
{
    return rewrite_table(table, rows, 0);
}

static int compare_cohorts(const void *left, const void *right)
{
    const struct rec_cohort *a = left;
    const struct rec_cohort *b = right;
    return order_u64(a->row, b->row)
               ?: order_u64(a->born_slice, b->born_slice)
               ?: order_u64(a->freed_slice, b->freed_slice);
}

enum err cohort_table_collect(struct cohort_table *table, struct rec_cohort_vec *out)
{
    TRY(cohort_table_count(table));
    const size_t begin = out->len;
    for (size_t i = 0; i < table->cohorts.len; i++) {
        TRY(rec_cohort_vec_push(out, table->cohorts.items[i]));
    }
    if (table->cohorts.len > 1) {
        qsort(out->items + begin, out->len - begin, sizeof(*out->items), compare_cohorts);
    }
    return ERR_OK;
}
