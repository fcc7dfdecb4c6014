// SPDX-License-Identifier: MIT
// history_rules: what the rows, and the tables of their history, say of each other.
//
// Most rows were active in one slice only, allocated one size, and so on. Such a row's one entry in
// a table of its history (cells, buckets, cohorts) says again what the row says; a *lone* keeps the
// one number that the row does not know, and the entry is not stored. And of a cell's frees nothing
// is new where all cohorts are known: what was allocated in a slice and is in no cohort was freed
// there. history_fold leaves both out, history_unfold puts them back; this is what they agree on.
// Context: H; one thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/vec.h"
#include "recording/schema.h"

// The only entry that a row has in each table of its history, if the rest of it follows from the
// row. Numbered as rows are.
struct rec_lone {
    uint32_t slice;           // of its cell, or REC_NONE
    uint32_t has_one_size;    // 1: all blocks are in the size bucket of their mean
    uint32_t lifetime_bucket; // of all that was freed, or REC_NONE
    uint32_t cohort_slice;    // birth of all that is alive at the end; means nothing if nothing is
};
DEFINE_VEC(rec_lone_vec, struct rec_lone);

extern const struct rec_lone rec_lone_none;

// Whether that table is part of the history of rows. Its entries begin with the number of a row.
bool is_history_table(enum rec_table_index index);

// Whether `lone` says anything of a row in that table.
bool history_says(enum rec_table_index index,
                  const struct rec_lone *lone,
                  const struct rec_row *row);

// Fills `out`, an entry of the table, with what `lone` says of row `number`. False if that is
// nothing.
bool history_imply(enum rec_table_index index,
                   const struct rec_lone *lone,
                   const struct rec_row *row,
                   uint32_t number,
                   void *out);

// Makes `lone` say `entry`, the row's only one in that table. False, and nothing changes, if
// history_imply would then say anything else.
bool history_propose(enum rec_table_index index,
                     const void *entry,
                     const struct rec_row *row,
                     uint32_t number,
                     struct rec_lone *lone);

// Whether `entry` of the table may follow `before`: by row, then slice and so on, no two alike.
bool history_is_after(enum rec_table_index index, const void *entry, const void *before);

// Slices beyond are not followed.
#define FLOW_SLICES_MAX 65536u

// The blocks that left a slice alive, less those that came to it from earlier ones to die; modulo
// 2^64.
struct flow_change {
    uint64_t blocks;
    uint64_t bytes;
};
DEFINE_VEC(flow_change_vec, struct flow_change);

// Walks through cells and cohorts together, both sorted. Memory: 16 bytes for each slice, at most a
// MiB. Zeroed is valid.
struct history_flow {
    const struct rec_cohort *cohorts; // borrowed
    size_t cohort_count;
    size_t first_cohort;            // of the row under way
    size_t next_cohort;             // behind its last one
    struct flow_change_vec changes; // of that row, by slice
    uint32_t row;
    bool is_dense; // all slices of the cohorts are followed
};

// Begins with the first row, perhaps not for the first time. ERR_NO_MEMORY.
enum err history_flow_begin(struct history_flow *flow,
                            const struct rec_cohort *cohorts,
                            size_t count) MUST_USE;
void history_flow_release(struct history_flow *flow);

// What left the slice of `cell`; cells are asked for in their order.
struct flow_change history_flow_at(struct history_flow *flow, const struct rec_cell *cell);
