// SPDX-License-Identifier: MIT
// row_table: what each stack did on each thread.
//
// The table finds who owned the global peak without visiting all rows at each new peak. Each new
// peak gets the next number. A row stores the number of the latest peak when it changes. While the
// row does not change, its live bytes are its bytes at every peak that follows. So just before its
// next change, and when the recording is written, the row copies its live bytes into its peak
// columns if there was a newer peak. Entries of books come in no order: what they say of the peak
// is merged (session/books/peak_share.h).
//
// Logs have single events. With many rows, the memory of one (its row, a histogram) is not in the
// processor's caches. So events are noted first, and some dozens are counted together while the
// memory for the next ones is fetched. With few rows, runs of events are counted at once.
//
// Rows have the layout of the recording; `row_extra` has the table's own data beside each.
// Memory: 112 bytes a row for both, 6 to 11 to find it, and four a node; cells and cohorts in
// addition. Too many of them become coarser than the recording's time slices, by powers of two.
// Invariants: rows are unique by (thread, node); frees <= allocations, freed <= allocated bytes.
// Context: H, one thread.
// Failure: ERR_NO_MEMORY, ERR_LIMIT (2^32 rows).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "aggregate/rows/bucket_set.h"
#include "aggregate/rows/cell_table.h"
#include "aggregate/rows/cohort_table.h"
#include "aggregate/tables/id_index.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"
#include "session/books/book_layout.h"

DEFINE_VEC(rec_row_vec, struct rec_row);

enum row_change {
    ROW_ALLOCATED,
    ROW_FREED,
    ROW_WAS_TEMPORARY,
};

struct row_extra {
    uint64_t peak_number;            // at the row's latest change
    struct bucket_set histograms[2]; // [ROW_ALLOCATED]: sizes; [ROW_FREED]: lifetimes, in ms
    struct row_cells cells;
};
_Static_assert(sizeof(struct row_extra) == 32, "one for each of perhaps millions of rows");

DEFINE_VEC(row_extra_vec, struct row_extra);

// A change of a row that is not counted yet.
struct row_note {
    uint64_t size_bytes;
    uint64_t peak_number; // at the time of the change
    uint32_t row;
    uint32_t count;  // number of blocks, except ROW_ALLOCATED and ROW_FREED, which mean one
    uint16_t change; // enum row_change
    uint16_t bucket; // of the size; ROW_FREED*: of the lifetime
};
_Static_assert(sizeof(struct row_note) == 32, "all notes together stay in the nearest cache");

#define ROW_NOTES_MAX 64u
#define ROWS_NEAR     256u // so many rows stay in the near caches, with their histograms

struct row_table {
    struct rec_row_vec rows;
    struct row_extra_vec extras; // parallel to rows
    struct id_index index;
    // node -> its row that was requested last, or REC_NONE. With one thread it is the only row, and
    // saves two memory accesses
    struct u32_vec latest_of_nodes;
    struct cell_table cells;
    struct cohort_table cohorts;
    uint64_t peak_number;  // number of peaks so far; the caller increments it
    uint32_t slice;        // the current time slice
    uint32_t cell_shift;   // a cell covers 1 << cell_shift slices
    uint32_t cohort_shift; // a cohort step covers 1 << cohort_shift slices; at least cell_shift
    // The limits of cells and cohorts. An eighth of the number of rows is added to each. Few rows
    // have a lower limit of cells: 3/16 of cells_max, and three a row.
    size_t cells_max;
    size_t cohorts_max;
    uint32_t note_count;
    struct row_note notes[ROW_NOTES_MAX];
};

void row_table_release(struct row_table *table);

// Return the memory in use. Visits every row.
size_t row_table_bytes(const struct row_table *table);

// Get the row of (thread, node), added if it is new.
enum err row_table_get(struct row_table *table, uint32_t thread, uint32_t node, uint32_t *out_row)
    MUST_USE;

// Return whether (thread, node) has a row.
bool row_table_has(const struct row_table *table, uint32_t thread, uint32_t node);

// Return the slice of the current cells.
static inline uint32_t row_table_step(const struct row_table *table)
{
    return table->slice >> table->cell_shift;
}

// Count all notes. Rows and extras are complete afterwards. A failure loses one event.
enum err row_table_count(struct row_table *table) MUST_USE;

// Before a change: if a peak was set since the row's last change, its live bytes are its bytes at
// the latest peak.
static inline void
row_commit_peak(struct rec_row *row, struct row_extra *extra, uint64_t peak_number)
{
    if (extra->peak_number != peak_number) {
        row->peak_bytes = row->allocated_bytes - row->freed_bytes;
        row->peak_blocks = row->allocations - row->frees;
        extra->peak_number = peak_number;
    }
}

// Return the row's number of allocations, or of frees; the sum of their bytes follows.
static inline uint64_t *row_sums_of(struct rec_row *row, enum row_change change)
{
    _Static_assert(offsetof(struct rec_row, allocated_bytes) ==
                           offsetof(struct rec_row, allocations) + sizeof(uint64_t) &&
                       offsetof(struct rec_row, frees) ==
                           offsetof(struct rec_row, allocations) + 2 * sizeof(uint64_t) &&
                       offsetof(struct rec_row, freed_bytes) ==
                           offsetof(struct rec_row, allocations) + 3 * sizeof(uint64_t),
                   "four numbers side by side");
    return (uint64_t *)((char *)row + offsetof(struct rec_row, allocations)) + (size_t)2 * change;
}

// Count an allocation or a free. Of notes, both take the same way, without a branch, because which
// of them comes next is unpredictable.
ALWAYS_INLINE MUST_USE enum err
row_table_count_block(struct row_table *table, const struct row_note *note, uint32_t step)
{
    struct rec_row *row = table->rows.items + note->row;
    struct row_extra *extra = table->extras.items + note->row;
    uint64_t *sums = row_sums_of(row, note->change);
    TRY(cell_table_touch(&table->cells, &extra->cells, row, step));
    TRY(bucket_set_add(&extra->histograms[note->change], note->bucket, note->size_bytes, sums[0],
                       sums[1]));
    row_commit_peak(row, extra, note->peak_number);
    sums[0]++;
    sums[1] += note->size_bytes;
    const uint64_t live_bytes = row->allocated_bytes - row->freed_bytes;
    if (live_bytes > row->own_peak_bytes) {
        row->own_peak_bytes = live_bytes;
    }
    return ERR_OK;
}

// Return false while there are so few rows that prefetching costs more than it saves.
static inline bool row_table_needs_prefetch(const struct row_table *table)
{
    return table->rows.len > ROWS_NEAR;
}

// Return the note for a change of `row`, and start fetching the row's memory. row and peak_number
// are set; the caller sets the rest and calls row_table_noted. The note is filled in place: copying
// a whole note right after writing its parts would stall until they reach the cache. Inline, as the
// next functions: each event calls them.
static inline struct row_note *row_table_note(struct row_table *table, uint32_t row_number)
{
    if (row_table_needs_prefetch(table)) {
        const struct rec_row *row = table->rows.items + row_number;
        __builtin_prefetch(row, 1);
        __builtin_prefetch(&row->own_peak_bytes, 1);
        __builtin_prefetch(table->extras.items + row_number, 1);
    }
    struct row_note *note = table->notes + table->note_count;
    note->row = row_number;
    note->peak_number = table->peak_number;
    return note;
}

static inline MUST_USE enum err row_table_noted(struct row_table *table)
{
    table->note_count++;
    return LIKELY(table->note_count < ROW_NOTES_MAX) ? ERR_OK : row_table_count(table);
}

// Note that the row allocated a block.
static inline MUST_USE enum err
row_table_allocated(struct row_table *table, uint32_t row, uint64_t size_bytes)
{
    struct row_note *note = row_table_note(table, row);
    note->size_bytes = size_bytes;
    note->change = ROW_ALLOCATED;
    note->bucket = (uint16_t)rec_bucket_of(size_bytes);
    return row_table_noted(table);
}

// Note in its cohort that a block, born in born_slice, was freed.
static inline MUST_USE enum err
row_table_outlived(struct row_table *table, uint32_t row, uint64_t size_bytes, uint32_t born_slice)
{
    const uint32_t born_step = born_slice >> table->cohort_shift;
    const uint32_t freed_step = table->slice >> table->cohort_shift;
    return born_step < freed_step
               ? cohort_table_add(&table->cohorts, row, born_step, freed_step, size_bytes)
               : ERR_OK;
}

// Note that a block of the row, born in born_slice, was freed. `lifetime`: the bucket of its
// lifetime in milliseconds, or BUCKET_UNKNOWN.
static inline MUST_USE enum err row_table_freed(struct row_table *table,
                                                uint32_t row,
                                                uint64_t size_bytes,
                                                uint32_t lifetime,
                                                uint32_t born_slice)
{
    TRY(row_table_outlived(table, row, size_bytes, born_slice));
    struct row_note *note = row_table_note(table, row);
    note->size_bytes = size_bytes;
    note->change = ROW_FREED;
    note->bucket = (uint16_t)lifetime;
    return row_table_noted(table);
}

// Note that `count` allocations of the row, of size_bytes each, turned out to be temporary.
static inline MUST_USE enum err
row_table_was_temporary(struct row_table *table, uint32_t row, uint64_t size_bytes, uint32_t count)
{
    struct row_note *note = row_table_note(table, row);
    note->size_bytes = size_bytes;
    note->count = count;
    note->change = ROW_WAS_TEMPORARY;
    return row_table_noted(table);
}

// Add what a thread counted of the row in its book. All notes have been counted, and the row has
// had what the entry frees.
enum err row_table_add_entry(struct row_table *table, uint32_t row, const struct book_entry *entry)
    MUST_USE;

// Advance to `slice`, after slices have merged `shift` times: s became s >> shift. Makes cells and
// cohorts coarser if there are too many. ERR_NO_MEMORY.
enum err row_table_advance(struct row_table *table, uint32_t slice, uint32_t shift) MUST_USE;

// Make rows of the same thread and node one, after their nodes were changed. All notes are counted,
// and all rows have the peak's number. Sets rows[r], one for each row, to the new number of row r,
// which is never larger. The own peak of such a row is then a lower bound: its parts may have had
// theirs together.
enum err row_table_join(struct row_table *table, uint32_t *rows) MUST_USE;

// Update the peak columns of `row`, after row_table_count. `is_alive`: its process has not ended.
// `end_number`: the number of the peak at that end. (Rows of ended processes hold nothing at later
// peaks.)
void row_table_commit_peak(struct row_table *table,
                           uint32_t row,
                           bool is_alive,
                           uint64_t end_number);
