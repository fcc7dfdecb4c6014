// SPDX-License-Identifier: MIT
// cohort_table: blocks that outlived their time slice, by row and slices of birth and death.
//
// Only what has been freed is stored. What of a row and slice is still alive follows from the row's
// cells: allocated there, less what was freed there of its own, less its cohorts.
// Births and deaths come in no order that a cache would like, so they are noted first, and counted
// some thousands at a time, each while the memory for later ones is being fetched. Time only goes
// on, so whatever was freed in an earlier slice is complete, and only the cohorts of the slice
// under way need to be found again: they alone are in the index, which is small for it.
// Invariant: cohorts are by ascending freed_slice, no two of one row, birth and death.
// Memory: 24 bytes a cohort, 9 to 18 to find those of the slice under way, 64 KiB of notes.
// Context: H, one thread. Failure: ERR_NO_MEMORY, ERR_LIMIT.
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
    size_t first;      // of those in the index, which are the last ones and all of one freed_slice
    uint64_t *slots;   // owned, the index: high half of the hash, position in `cohorts`
    size_t slot_count; // a power of two, or 0
    size_t slot_cap;   // that there is memory for
    uint32_t note_count;
    struct cohort_note *notes; // owned; COHORT_NOTES_MAX, made with the first
};

void cohort_table_release(struct cohort_table *table);

// Memory in use.
size_t cohort_table_bytes(const struct cohort_table *table);

// Counts what has been noted. Afterwards `cohorts` is complete.
enum err cohort_table_count(struct cohort_table *table) MUST_USE;

// A block of `row`, born in an earlier slice, was freed. Slices are below 65536; freed_slice is not
// below that of any call before.
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

// The same of `blocks` more of them, counted at once: for what is rare.
enum err cohort_table_add_more(struct cohort_table *table, const struct rec_cohort *cohort)
    MUST_USE;

// Slice s becomes s >> shift; cohorts that then were born and freed in one slice are none any more.
enum err cohort_table_merge_slices(struct cohort_table *table, uint32_t shift) MUST_USE;

// Appends all to `out`, sorted by row, birth and death.
enum err cohort_table_collect(struct cohort_table *table, struct rec_cohort_vec *out) MUST_USE;
