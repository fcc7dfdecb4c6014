// SPDX-License-Identifier: MIT
// history_fold: the history of rows as a file has it, without what history_rules can tell.
//
// Works on tables that lie in memory and on those that a supply makes while they are written: it
// goes through them once to find and count what is left, and the writer then takes that, group by
// group. A history that is not sorted, or that names rows that there are not, is taken as it is.
// Memory: 16 bytes a row. Context: H; one thread at a time. Failure: ERR_NO_MEMORY.
#pragma once

#include "base/err.h"
#include "host/strbuf.h"
#include "recording/history_rules.h"
#include "recording/table_supply.h"

// Zeroed is valid, for releasing.
struct history_fold {
    const struct recording *recording; // borrowed
    const struct table_supply *supply; // borrowed; may be NULL
    bool is_folded;
    bool is_flowing;                // cells say of frees only what cohorts do not
    struct rec_lone_vec lones;      // one a row, if it is folded
    size_t counts[REC_TABLE_COUNT]; // entries that are left, of the tables of the history

    // How far the present table has been read.
    enum rec_table_index table;
    size_t unread;        // entries
    size_t at;            // the next one of those that are at hand
    size_t ready;         // how many are
    const char *entries;  // these
    struct strbuf buffer; // where they are, if a supply makes them
    struct history_flow flow;
};

// Finds what is left. The cohorts must lie in memory. ERR_NO_MEMORY.
enum err history_fold_begin(struct history_fold *fold,
                            const struct recording *recording,
                            const struct table_supply *supply) MUST_USE;
void history_fold_release(struct history_fold *fold);

// How the entries of that table are stored.
enum rec_form history_fold_form(const struct history_fold *fold, enum rec_table_index index);

// Begins a table of the history, and gives its next entries, in order. ERR_NO_MEMORY.
enum err history_fold_open(struct history_fold *fold, enum rec_table_index index) MUST_USE;
enum err history_fold_next(struct history_fold *fold, void *entries, size_t count) MUST_USE;
