// SPDX-License-Identifier: MIT
// event_tally: adds up a log of allocations and frees to the rows, slices and histograms of a
// recording.
//
// For importers of event logs with one order of events and one clock. A *kind* is a row (a stack)
// and a size; the log's events name kinds. Blocks of one kind cannot be told apart, so a log that
// knows its addresses also says how long a block lived (tally_lifetime).
//
//   tally_row, tally_kind ... tally_time, tally_allocate, tally_free ... -> tally_finish
//
// The peak without a scan at every maximum: `peak_number` counts the maxima that ended, and a row
// folds what it held then before it next changes. What a row did in the open slice is its `cell`;
// cells that are done lie in a pool, linked from the newest to the oldest, so that neighbouring
// slices can merge when the run outgrows SLICES_MAX of them. Both kinds of being behind show as
// one: a row whose `stamp` is not the tally's is brought up to date first.
//
// Bounded by rows x slices, and by what the importer asks of tally_bytes. Hostile figures: sums
// beyond TALLY_MAX_BYTES are ERR_LIMIT. Context: H; one thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/minmax.h"
#include "host/containers/map_u64.h"
#include "host/containers/vec.h"
#include "recording/write/recording_builder.h"

#define TALLY_SLICES_MAX 1024u
#define TALLY_MAX_BYTES  (UINT64_C(1) << 62) // of all allocations together

struct tally_cell {
    uint64_t allocations;
    uint64_t allocated_bytes;
    uint64_t frees;
    uint64_t freed_bytes;
    uint64_t temporary;
    uint32_t slice;
    uint32_t older; // in the pool, or REC_NONE
};

struct tally_row {
    struct tally_cell cell; // of the slice of its latest event
    uint64_t stamp;         // the tally's when it was last brought up to date
    uint64_t live_bytes;
    uint64_t live_blocks;
    uint64_t own_peak_bytes;
    uint64_t peak_bytes; // held at the maximum number peak_number
    uint64_t peak_blocks;
    uint64_t peak_number;
    uint64_t temporary_bytes;
};

struct tally_kind {
    uint64_t size_bytes;
    uint64_t allocations;
    uint64_t live_blocks;
    uint32_t row;
};

DEFINE_VEC(tally_cell_vec, struct tally_cell);
DEFINE_VEC(tally_row_vec, struct tally_row);
DEFINE_VEC(tally_kind_vec, struct tally_kind);

struct event_tally {
    struct tally_row_vec rows;             // owned; as the builder's
    struct tally_kind_vec kinds;           // owned
    struct tally_cell_vec pool;            // owned
    struct lifetime_buckets_vec lifetimes; // owned
    struct map_u64 lifetime_of;            // owned; (row, bucket) -> index in lifetimes
    struct cohorts_vec cohorts;            // owned; of blocks that were freed
    struct map_u64 cohort_of;              // owned; (row, born, freed) -> index in cohorts
    uint64_t stamp;
    uint64_t now_ms;
    uint32_t slice;
    uint32_t slice_shift; // a slice lasts 1 << slice_shift ms
    bool is_rising;       // the present maximum has not ended
    uint64_t peak_number;
    uint64_t peak_time_ms;
    uint64_t peak_bytes;
    uint64_t live_bytes;
    uint64_t allocated_bytes;
    uint64_t slice_max_bytes[TALLY_SLICES_MAX];
    uint64_t slice_rss_bytes[TALLY_SLICES_MAX];
};

void tally_release(struct event_tally *t); // accepts a zeroed one; zeroed is valid

// The row of `node` on `thread`, which must be new to the builder.
enum err tally_row(struct event_tally *t,
                   struct recording_builder *b,
                   uint32_t thread,
                   uint32_t node,
                   uint32_t *out_row) MUST_USE;
// Kinds count from 0.
enum err tally_kind(struct event_tally *t, uint32_t row, uint64_t size_bytes) MUST_USE;

// Time moves on; it never goes back.
enum err tally_time(struct event_tally *t, uint64_t now_ms) MUST_USE;
void tally_rss(struct event_tally *t, uint64_t rss_bytes);

// A block that is freed now was allocated at born_ms: by slices, and by how long it lived.
enum err tally_cohort(struct event_tally *t, uint32_t row, uint64_t born_ms, uint64_t size_bytes)
    MUST_USE;
enum err tally_lifetime(struct event_tally *t, uint32_t row, uint64_t born_ms, uint64_t size_bytes)
    MUST_USE;

// `count` blocks of `row` that were never freed; after the last event.
enum err tally_survivors(struct event_tally *t,
                         uint32_t row,
                         uint64_t born_ms,
                         uint64_t count,
                         uint64_t size_bytes) MUST_USE;

// Memory in use, roughly.
uint64_t tally_bytes(const struct event_tally *t);

// Fills the builder's rows, cells, slices, buckets, cohorts, RSS samples of process 0, and totals.
enum err tally_finish(struct event_tally *t, struct recording_builder *b) MUST_USE;

// The slow part of the two below: `row` is behind.
enum err tally_catch_up(struct event_tally *t, struct tally_row *row) MUST_USE;

static inline MUST_USE enum err tally_allocate(struct event_tally *t, uint32_t kind_id)
{
    struct tally_kind *kind = &t->kinds.items[kind_id];
    struct tally_row *row = &t->rows.items[kind->row];
    uint64_t bytes = kind->size_bytes;
    if (UNLIKELY(row->stamp != t->stamp)) {
        TRY(tally_catch_up(t, row));
    }
    if (UNLIKELY(bytes > TALLY_MAX_BYTES || t->allocated_bytes + bytes > TALLY_MAX_BYTES)) {
        return ERR_LIMIT;
    }
    kind->allocations++;
    kind->live_blocks++;
    row->cell.allocations++;
    row->cell.allocated_bytes += bytes;
    row->live_blocks++;
    row->live_bytes += bytes;
    row->own_peak_bytes = max_u64(row->own_peak_bytes, row->live_bytes);
    t->allocated_bytes += bytes;
    t->live_bytes += bytes;
    if (t->live_bytes > t->slice_max_bytes[t->slice]) {
        t->slice_max_bytes[t->slice] = t->live_bytes;
        if (t->live_bytes > t->peak_bytes) {
            t->peak_bytes = t->live_bytes;
            t->peak_time_ms = t->now_ms;
            t->is_rising = true;
        }
    }
    return ERR_OK;
}

// ERR_CORRUPT if no block of that kind is live.
static inline MUST_USE enum err
tally_free(struct event_tally *t, uint32_t kind_id, bool is_temporary)
{
    struct tally_kind *kind = &t->kinds.items[kind_id];
    struct tally_row *row = &t->rows.items[kind->row];
    uint64_t bytes = kind->size_bytes;
    if (UNLIKELY(kind->live_blocks == 0)) {
        return ERR_CORRUPT;
    }
    if (t->is_rising) {
        t->is_rising = false;
        t->peak_number++;
        t->stamp++;
    }
    if (UNLIKELY(row->stamp != t->stamp)) {
        TRY(tally_catch_up(t, row));
    }
    kind->live_blocks--;
    row->cell.frees++;
    row->cell.freed_bytes += bytes;
    row->cell.temporary += is_temporary;
    row->temporary_bytes += is_temporary ? bytes : 0;
    row->live_blocks--;
    row->live_bytes -= bytes;
    t->live_bytes -= bytes;
    return ERR_OK;
}
