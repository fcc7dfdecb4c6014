// SPDX-License-Identifier: MIT
// history_fold: see the header.
#include "recording/history_fold.h"

#include <string.h>

#include "base/compiler.h"

enum {
    READ_STEP = 1024, // entries that are asked of a supply at once
};

// In the order in which they are gone through: cells need the cohorts of lone rows.
static const enum rec_table_index history_tables[] = {
    REC_TABLE_COHORTS, REC_TABLE_CELLS, REC_TABLE_SIZE_BUCKETS, REC_TABLE_LIFETIME_BUCKETS};

void history_fold_release(struct history_fold *fold)
{
    rec_lone_vec_release(&fold->lones);
    strbuf_release(&fold->buffer);
    history_flow_release(&fold->flow);
}

static uint32_t row_of(const void *entry)
{
    uint32_t row = 0;
    memcpy(&row, entry, sizeof(row));
    return row;
}

static bool is_supplied(const struct history_fold *fold, enum rec_table_index index)
{
    return fold->supply != NULL && fold->supply->count(fold->supply->context, index) > 0;
}

enum err history_fold_open(struct history_fold *fold, enum rec_table_index index)
{
    fold->table = index;
    fold->at = 0;
    if (is_supplied(fold, index)) {
        fold->supply->begin(fold->supply->context, index);
        fold->unread = fold->supply->count(fold->supply->context, index);
        fold->ready = 0;
    } else {
        fold->unread = 0;
        fold->ready = rec_table_count(&rec_tables[index], fold->recording);
        fold->entries = rec_table_items(&rec_tables[index], fold->recording);
    }
    return index != REC_TABLE_CELLS ? ERR_OK
                                    : history_flow_begin(&fold->flow, fold->recording->cohorts,
                                                         fold->recording->cohort_count);
}

// The next entry of the table as it was given; NULL at its end.
static enum err read_next(struct history_fold *fold, const void **out)
{
    const size_t entry_bytes = rec_tables[fold->table].entry_bytes;
    *out = NULL;
    if (fold->at == fold->ready && fold->unread > 0) {
        const size_t step = fold->unread < READ_STEP ? fold->unread : READ_STEP;
        strbuf_clear(&fold->buffer);
        if (!strbuf_reserve(&fold->buffer, step * entry_bytes)) {
            return ERR_NO_MEMORY;
        }
        TRY(fold->supply->next(fold->supply->context, fold->table, fold->buffer.data, step));
        fold->entries = fold->buffer.data;
        fold->at = 0;
        fold->ready = step;
        fold->unread -= step;
    }
    if (fold->at < fold->ready) {
        *out = fold->entries + fold->at++ * entry_bytes;
    }
    return ERR_OK;
}

// Whether a lone says this entry: it does only of a row's only one.
static bool is_implied(const struct history_fold *fold, const void *entry)
{
    const uint32_t row = row_of(entry);
    return history_says(fold->table, fold->lones.items + row, fold->recording->rows + row);
}

// How many cells can do without their frees: if the cohorts say them, and if nothing does.
struct free_forms {
    size_t flowing;
    size_t equal;
};

// The entries of a table that belong to one row.
struct row_run {
    struct rec_cell first; // the largest of them
    size_t count;
    struct free_forms forms; // of cells
};

// What is found in a table.
struct fold_pass {
    struct history_fold *fold;
    enum rec_table_index index;
    struct row_run run;
    struct free_forms forms; // of all cells but those that lones say
};

// If the run is one entry that follows from its row, a lone says it.
static void end_run(struct fold_pass *pass)
{
    struct history_fold *fold = pass->fold;
    const struct row_run *run = &pass->run;
    if (run->count == 0) {
        return;
    }
    const uint32_t row = row_of(&run->first);
    const bool is_lone =
        run->count == 1 && history_propose(fold->table, &run->first, fold->recording->rows + row,
                                           row, fold->lones.items + row);
    if (!is_lone) {
        fold->counts[fold->table] += run->count;
        pass->forms.flowing += run->forms.flowing;
        pass->forms.equal += run->forms.equal;
    }
    pass->run = (struct row_run){0};
}

static void add_to_run(struct fold_pass *pass, const void *entry)
{
    struct row_run *run = &pass->run;
    if (run->count++ == 0) {
        memcpy(&run->first, entry, rec_tables[pass->index].entry_bytes);
    }
    if (pass->index == REC_TABLE_CELLS) {
        const struct rec_cell *cell = entry;
        const uint64_t left = history_flow_at(&pass->fold->flow, cell).blocks;
        run->forms.flowing += cell->frees + left == cell->allocations;
        run->forms.equal += cell->frees == cell->allocations;
    }
}

// Finds the lones of a table; sets *is_sound if its entries are in order and their rows are there.
static enum err find_lones(struct fold_pass *pass, bool *is_sound)
{
    struct history_fold *fold = pass->fold;
    const enum rec_table_index index = pass->index;
    const size_t entry_bytes = rec_tables[index].entry_bytes;
    struct rec_cell before;
    const void *entry = NULL;
    TRY(history_fold_open(fold, index));
    for (bool is_first = true;; is_first = false) {
        TRY(read_next(fold, &entry));
        if (entry == NULL) {
            break;
        }
        *is_sound = row_of(entry) < fold->recording->row_count &&
                    (is_first || history_is_after(index, entry, &before));
        if (!*is_sound) {
            return ERR_OK;
        }
        if (pass->run.count > 0 && row_of(entry) != row_of(&pass->run.first)) {
            end_run(pass);
        }
        add_to_run(pass, entry);
        memcpy(&before, entry, entry_bytes);
    }
    end_run(pass);
    if (index == REC_TABLE_CELLS) {
        // The cohorts say nothing of single cells where they are coarser than these.
        fold->is_flowing = fold->flow.is_dense && pass->forms.flowing >= pass->forms.equal;
    }
    return ERR_OK;
}

// Where nothing is alive, the word for it means nothing: so it is one that costs nothing.
static void fill_idle_words(struct history_fold *fold)
{
    for (size_t i = 0; i < fold->lones.len; i++) {
        const struct rec_row *row = fold->recording->rows + i;
        if (row->allocations <= row->frees) {
            fold->lones.items[i].cohort_slice = fold->lones.items[i].slice;
        }
    }
}

static size_t given_count(const struct history_fold *fold, enum rec_table_index index)
{
    return is_supplied(fold, index) ? fold->supply->count(fold->supply->context, index)
                                    : rec_table_count(&rec_tables[index], fold->recording);
}

static enum err fold_all(struct history_fold *fold)
{
    bool is_sound = true;
    TRY(rec_lone_vec_resize(&fold->lones, fold->recording->row_count));
    for (size_t i = 0; i < fold->lones.len; i++) {
        fold->lones.items[i] = rec_lone_none;
    }
    for (size_t i = 0; i < ARRAY_LEN(history_tables) && is_sound; i++) {
        struct fold_pass pass = {.fold = fold, .index = history_tables[i]};
        TRY(find_lones(&pass, &is_sound));
    }
    if (!is_sound) {
        rec_lone_vec_clear(&fold->lones);
        return ERR_OK;
    }
    fold->is_folded = true;
    fill_idle_words(fold);
    return ERR_OK;
}

enum err history_fold_begin(struct history_fold *fold,
                            const struct recording *recording,
                            const struct table_supply *supply)
{
    size_t given = 0;
    *fold = (struct history_fold){.recording = recording, .supply = supply};
    for (size_t i = 0; i < ARRAY_LEN(history_tables); i++) {
        given += given_count(fold, history_tables[i]);
    }
    if (given > 0) {
        TRY(fold_all(fold));
    }
    for (size_t i = 0; i < ARRAY_LEN(history_tables) && !fold->is_folded; i++) {
        fold->counts[history_tables[i]] = given_count(fold, history_tables[i]);
    }
    return ERR_OK;
}

enum rec_form history_fold_form(const struct history_fold *fold, enum rec_table_index index)
{
    if (!fold->is_folded || !is_history_table(index)) {
        return REC_FORM_PLAIN;
    }
    return index == REC_TABLE_CELLS && fold->is_flowing ? REC_FORM_FLOWING : REC_FORM_FOLDED;
}

static void let_flow(struct history_fold *fold, struct rec_cell *cell)
{
    const struct flow_change change = history_flow_at(&fold->flow, cell);
    cell->frees += change.blocks;
    cell->freed_bytes += change.bytes;
}

enum err history_fold_next(struct history_fold *fold, void *entries, size_t count)
{
    const size_t entry_bytes = rec_tables[fold->table].entry_bytes;
    const bool flows = history_fold_form(fold, fold->table) == REC_FORM_FLOWING;
    char *out = entries;
    for (size_t i = 0; i < count;) {
        const void *entry = NULL;
        TRY(read_next(fold, &entry));
        if (entry == NULL) {
            return ERR_LIMIT; // there are fewer than there were
        }
        if (fold->is_folded && is_implied(fold, entry)) {
            continue;
        }
        memcpy(out, entry, entry_bytes);
        if (flows) {
            let_flow(fold, (struct rec_cell *)(void *)out);
        }
        out += entry_bytes;
        i++;
    }
    return ERR_OK;
}
