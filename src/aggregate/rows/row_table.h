// SPDX-License-Identifier: MIT
// row_table: what each stack did on each thread.
//
// Who owns the global peak, without looking at all rows whenever it moves: each new maximum has a
// number. A row remembers the number that was current when it last changed. If the number has moved
// since, a maximum was set while the row stood still, so its live bytes are what it held at the
// latest one: it writes them down just before it changes again, or when it is asked.
//
// With many rows, what an event touches (its row, a histogram) is in no near cache. So it
// is only noted at first, and some dozens of events are counted together, each while the memory for
// the next ones is on its way.
//
// Rows lie in memory as the recording wants them; beside each, `row_extra` holds what only we need:
// 112 bytes a row together, 6 to 11 to find it, and four a node. Cells and cohorts come on top;
// when there are too many of them, they become coarser than the recording's time slices, by powers
// of two. Invariants: rows are unique by (thread, node); frees <= allocations, freed <= allocated
// bytes. Context: H, one thread. Failure: ERR_NO_MEMORY, ERR_LIMIT (2^32 rows).
#pragma once

#include <stdint.h>

#include "aggregate/rows/bucket_set.h"
#include "aggregate/rows/cell_table.h"
#include "aggregate/rows/cohort_table.h"
#include "aggregate/tables/id_index.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

struct row_extra {
    uint64_t peak_number; // current when the row last changed
    struct bucket_set sizes;
    struct bucket_set lifetimes; // in milliseconds, of what was freed
    struct row_cells cells;
};
_Static_assert(sizeof(struct row_extra) == 32, "one for each of perhaps millions of rows");

DEFINE_VEC(rec_row_vec, struct rec_row);
DEFINE_VEC(row_extra_vec, struct row_extra);

enum row_change {
    ROW_ALLOCATED,
    ROW_FREED,
    ROW_PAIRED,
    ROW_PAIRED_TEMPORARY,
    ROW_WAS_TEMPORARY,
    ROW_WAS_AT_PEAK,
    ROW_ALLOCATED_MORE, // what the note before it stands for, beside itself
    ROW_FREED_MORE,
};

// Something that happened to a row and is not counted yet.
struct row_note {
    uint64_t size_bytes;  // ROW_PAIRED*: of all together
    uint64_t peak_number; // of then
    uint32_t row;
    uint32_t count;      // how many; but for ROW_ALLOCATED and ROW_FREED, which are one
    uint32_t mean_bytes; // ROW_PAIRED*: of one
    uint16_t change;     // enum row_change
    uint16_t bucket;     // of the size; ROW_FREED*: of the lifetime
};
_Static_assert(sizeof(struct row_note) == 32, "all notes together stay in the nearest cache");

#define ROW_NOTES_MAX 64u

struct row_table {
    struct rec_row_vec rows;
    struct row_extra_vec extras; // parallel to rows
    struct id_index index;
    struct u32_vec latest_of_nodes; // a node's row that was asked for last, or REC_NONE: of one
                                    // thread it is the only one, and two looks at memory less
    struct cell_table cells;
    struct cohort_table cohorts;
    struct u64_vec weighted; // a bit for each row of which a block has ever stood for others
    uint64_t peak_number;    // how often the recording has set a new maximum; its user counts
    uint32_t slice;          // the time slice under way
    uint32_t cell_shift;     // a cell stands for 1 << cell_shift slices
    uint32_t cohort_shift;   // a step of a cohort for 1 << cohort_shift; at least cell_shift
    size_t cells_max;   // of many rows; few may have 3/16 of it and three a row; an eighth as many
                        // as rows come on top
    size_t cohorts_max; // of any; an eighth as many as rows come on top
    uint32_t note_count;
    struct row_note notes[ROW_NOTES_MAX];
};

void row_table_release(struct row_table *table);

// Memory in use. Looks at every row.
size_t row_table_bytes(const struct row_table *table);

// The row of (thread, node), added if it is new.
enum err row_table_get(struct row_table *table, uint32_t thread, uint32_t node, uint32_t *out_row)
    MUST_USE;

// Whether there is one.
bool row_table_has(const struct row_table *table, uint32_t thread, uint32_t node);

// The slice of the cells that are under way.
static inline uint32_t row_table_step(const struct row_table *table)
{
    return table->slice >> table->cell_shift;
}

// Counts what has been noted. Afterwards rows and extras are complete. What fails costs the one
// event.
enum err row_table_count(struct row_table *table) MUST_USE;

// The note of what happens to `row`, whose memory is on its way from here on; row and peak_number
// are filled in, the rest is left to the caller, who then calls row_table_noted. In place: a note
// that is copied as a whole right after its parts were written waits for them to get to the cache.
// Inline, as the next ones: they are on the path of each event.
static inline struct row_note *row_table_note(struct row_table *table, uint32_t row_number)
{
    const struct rec_row *row = table->rows.items + row_number;
    __builtin_prefetch(row, 1);
    __builtin_prefetch(&row->own_peak_bytes, 1);
    __builtin_prefetch(table->extras.items + row_number, 1);
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

// The row allocated a block.
static inline MUST_USE enum err
row_table_allocated(struct row_table *table, uint32_t row, uint64_t size_bytes)
{
    struct row_note *note = row_table_note(table, row);
    note->size_bytes = size_bytes;
    note->change = ROW_ALLOCATED;
    note->bucket = (uint16_t)rec_bucket_of(size_bytes);
    return row_table_noted(table);
}

// A block of the row, born in born_slice, was freed; `lifetime` is the bucket of how long it lived,
// in milliseconds, or BUCKET_UNKNOWN.
static inline MUST_USE enum err row_table_freed(struct row_table *table,
                                                uint32_t row,
                                                uint64_t size_bytes,
                                                uint32_t lifetime,
                                                uint32_t born_slice)
{
    const uint32_t born_step = born_slice >> table->cohort_shift;
    const uint32_t freed_step = table->slice >> table->cohort_shift;
    if (born_step < freed_step) {
        TRY(cohort_table_add(&table->cohorts, row, born_step, freed_step, size_bytes));
    }
    struct row_note *note = row_table_note(table, row);
    note->size_bytes = size_bytes;
    note->change = ROW_FREED;
    note->bucket = (uint16_t)lifetime;
    return row_table_noted(table);
}

// The row allocated `count` > 0 blocks of `bytes` in all, whose sizes are of one bucket, and freed
// them at once. What it held in between is not known, but that one was not smaller than the mean.
static inline MUST_USE enum err row_table_paired(
    struct row_table *table, uint32_t row, uint32_t count, uint64_t bytes, bool is_temporary)
{
    struct row_note *note = row_table_note(table, row);
    const uint64_t mean_bytes = count == 1 ? bytes : bytes / count;
    note->size_bytes = bytes;
    note->count = count;
    note->mean_bytes = mean_bytes < UINT32_MAX ? (uint32_t)mean_bytes : UINT32_MAX;
    note->change = is_temporary ? ROW_PAIRED_TEMPORARY : ROW_PAIRED;
    note->bucket = (uint16_t)rec_bucket_of(mean_bytes);
    return row_table_noted(table);
}

// Whether any block of the row has stood for others.
static inline bool row_table_is_weighted(const struct row_table *table, uint32_t row)
{
    return row / 64 < table->weighted.len && (table->weighted.items[row / 64] >> row % 64 & 1) != 0;
}

// The block that was allocated last stands for `more` others, too.
enum err
row_table_allocated_more(struct row_table *table, uint32_t row, uint64_t size_bytes, uint32_t more)
    MUST_USE;

// So does the one that was freed last, of this row and these times.
enum err row_table_freed_more(struct row_table *table,
                              uint32_t row,
                              uint64_t size_bytes,
                              uint64_t lifetime_ms,
                              uint32_t born_slice,
                              uint32_t more) MUST_USE;

// `count` allocations of the row, of size_bytes each, turned out to be temporary.
static inline MUST_USE enum err
row_table_was_temporary(struct row_table *table, uint32_t row, uint64_t size_bytes, uint32_t count)
{
    struct row_note *note = row_table_note(table, row);
    note->size_bytes = size_bytes;
    note->count = count;
    note->change = ROW_WAS_TEMPORARY;
    return row_table_noted(table);
}

// At the latest peak, which was set just now, the row held a block more than it holds.
static inline MUST_USE enum err
row_table_was_at_peak(struct row_table *table, uint32_t row, uint64_t size_bytes)
{
    struct row_note *note = row_table_note(table, row);
    note->size_bytes = size_bytes;
    note->change = ROW_WAS_AT_PEAK;
    note->bucket = 0;
    return row_table_noted(table);
}

// Time comes to `slice`, after slices have merged `shift` times: s became s >> shift. Makes cells
// and cohorts coarser if there are too many. ERR_NO_MEMORY.
enum err row_table_advance(struct row_table *table, uint32_t slice, uint32_t shift) MUST_USE;

// Brings the peak columns of `row` up to date, after row_table_count. `is_alive` is false if its
// process has ended; `end_number` is the peak's number at that time. (The dead hold nothing at
// later peaks.)
void row_table_fold(struct row_table *table, uint32_t row, bool is_alive, uint64_t end_number);
