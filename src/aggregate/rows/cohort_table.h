// SPDX-License-Identifier: MIT
// cohort_table: blocks that outlived their time slice, by row and slices of birth and death.
//
// It stores only freed blocks. The live blocks of a row and slice follow from the row's cells: the
// blocks allocated there, minus those of them freed there, minus their cohorts. The order of births
// and deaths suits no cache. So they are noted first, and counted some thousands at a time while
// the memory for later ones is fetched. Time only increases, so the cohorts of earlier freed slices
// are complete. Only the cohorts of the current slice are searched: the index has only these, and
// stays small.
// Invariant: cohorts have ascending freed_slice; row, birth and death are unique.
// Memory: 24 bytes a cohort, 9 to 18 in the index for the current slice, 64 KiB of notes.
// Context: H, one thread.
// Failure: ERR_NO_MEMORY, ERR_LIMIT.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

DEFINE_VEC(rec_cohort_vec, struct rec_cohort);

struct cohort_note {
    uint64_t bytes;
    uint32_t row;
    uint16_t born_slice;
    uint16_t freed_slice;
};

#define COHORT_NOTES_MAX 4096u

struct cohort_table {
    struct rec_cohort_vec cohorts;
    size_t first;      // first cohort in the index, which has all of the latest freed_slice
    uint64_t *slots;   // owned, the index: high half of the hash, position in `cohorts`
    size_t slot_count; // a power of two, or 0
    size_t slot_cap;   // allocated slots
    uint32_t note_count;
    struct cohort_note *notes; // owned; COHORT_NOTES_MAX, allocated with the first note
};

void cohort_table_release(struct cohort_table *table);

// Return the memory in use.
size_t cohort_table_bytes(const struct cohort_table *table);

// Count all notes. `cohorts` is complete afterwards.
enum err cohort_table_count(struct cohort_table *table) MUST_USE;

// Note that a block of `row`, born in an earlier slice, was freed. Slices are below 65536;
// freed_slice never decreases between calls.
static inline MUST_USE enum err cohort_table_add(struct cohort_table *table,
                                                 uint32_t row,
                                                 uint32_t born_slice,
                                                 uint32_t freed_slice,
                                                 uint64_t bytes)
{
    if (UNLIKELY(table->notes == NULL || table->note_count == COHORT_NOTES_MAX)) {
        TRY(cohort_table_count(table));
    }
    table->notes[table->note_count++] = (struct cohort_note){.bytes = bytes,
                                                             .row = row,
                                                             .born_slice = (uint16_t)born_slice,
                                                             .freed_slice = (uint16_t)freed_slice};
    return ERR_OK;
}

// Count `blocks` more blocks like that at once, without a note: the case is rare.
enum err cohort_table_add_more(struct cohort_table *table, const struct rec_cohort *cohort)
    MUST_USE;

// Merge slices: slice s becomes s >> shift. Cohorts whose birth and death fall into one slice
// disappear.
enum err cohort_table_merge_slices(struct cohort_table *table, uint32_t shift) MUST_USE;

// Give rows new numbers: row r becomes rows[r]. Several may become one.
enum err cohort_table_renumber(struct cohort_table *table, const uint32_t *rows) MUST_USE;

// Append all cohorts to `out`, sorted by row, birth and death.
enum err cohort_table_collect(struct cohort_table *table, struct rec_cohort_vec *out) MUST_USE;
