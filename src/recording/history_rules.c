// SPDX-License-Identifier: MIT
// history_rules: see the header.
#include "recording/history_rules.h"

#include <string.h>

const struct rec_lone rec_lone_none = {
    .slice = REC_NONE, .lifetime_bucket = REC_NONE, .cohort_slice = REC_NONE};

static bool is_number(const struct rec_row *row, uint32_t word)
{
    (void)row;
    return word != REC_NONE;
}

static void make_cell(const struct rec_row *row, uint32_t number, uint32_t slice, void *out)
{
    const struct rec_cell cell = {.row = number,
                                  .slice = slice,
                                  .allocations = row->allocations,
                                  .allocated_bytes = row->allocated_bytes,
                                  .frees = row->frees,
                                  .freed_bytes = row->freed_bytes,
                                  .temporary = row->temporary};
    memcpy(out, &cell, sizeof(cell));
}

static bool has_one_size(const struct rec_row *row, uint32_t has_one)
{
    return has_one == 1 && row->allocations > 0;
}

static void make_size(const struct rec_row *row, uint32_t number, uint32_t has_one, void *out)
{
    (void)has_one;
    const struct rec_bucket bucket = {.row = number,
                                      .bucket =
                                          rec_bucket_of(row->allocated_bytes / row->allocations),
                                      .count = row->allocations,
                                      .bytes = row->allocated_bytes};
    memcpy(out, &bucket, sizeof(bucket));
}

static void make_lifetime(const struct rec_row *row, uint32_t number, uint32_t only, void *out)
{
    const struct rec_bucket bucket = {
        .row = number, .bucket = only, .count = row->frees, .bytes = row->freed_bytes};
    memcpy(out, &bucket, sizeof(bucket));
}

static bool has_one_birth(const struct rec_row *row, uint32_t born)
{
    return born != REC_NONE && row->allocations > row->frees &&
           row->allocations - row->frees <= UINT32_MAX;
}

static void make_cohort(const struct rec_row *row, uint32_t number, uint32_t born, void *out)
{
    const struct rec_cohort cohort = {.row = number,
                                      .born_slice = born,
                                      .freed_slice = REC_NONE,
                                      .blocks = (uint32_t)(row->allocations - row->frees),
                                      .bytes = row->allocated_bytes - row->freed_bytes};
    memcpy(out, &cohort, sizeof(cohort));
}

static uint32_t propose_cell(const void *entry)
{
    return ((const struct rec_cell *)entry)->slice;
}

static uint32_t propose_size(const void *entry)
{
    (void)entry;
    return 1;
}

static uint32_t propose_lifetime(const void *entry)
{
    return ((const struct rec_bucket *)entry)->bucket;
}

static uint32_t propose_cohort(const void *entry)
{
    return ((const struct rec_cohort *)entry)->born_slice;
}

static bool is_cell_after(const void *entry, const void *before)
{
    const struct rec_cell *a = before;
    const struct rec_cell *b = entry;
    return a->row != b->row ? a->row < b->row : a->slice < b->slice;
}

static bool is_bucket_after(const void *entry, const void *before)
{
    const struct rec_bucket *a = before;
    const struct rec_bucket *b = entry;
    return a->row != b->row ? a->row < b->row : a->bucket < b->bucket;
}

static bool is_cohort_after(const void *entry, const void *before)
{
    const struct rec_cohort *a = before;
    const struct rec_cohort *b = entry;
    if (a->row != b->row || a->born_slice == b->born_slice) {
        return a->row != b->row ? a->row < b->row : a->freed_slice < b->freed_slice;
    }
    return a->born_slice < b->born_slice;
}

static const struct history_rule {
    size_t offset; // of its word in rec_lone
    bool (*says)(const struct rec_row *row, uint32_t word);
    void (*make)(const struct rec_row *row, uint32_t number, uint32_t word, void *out);
    uint32_t (*propose)(const void *entry); // that word
    bool (*is_after)(const void *entry, const void *before);
} rules[REC_TABLE_COUNT] = {
    [REC_TABLE_COHORTS] = {offsetof(struct rec_lone, cohort_slice), has_one_birth, make_cohort,
                           propose_cohort, is_cohort_after},
    [REC_TABLE_CELLS] = {offsetof(struct rec_lone, slice), is_number, make_cell, propose_cell,
                         is_cell_after},
    [REC_TABLE_SIZE_BUCKETS] = {offsetof(struct rec_lone, has_one_size), has_one_size, make_size,
                                propose_size, is_bucket_after},
    [REC_TABLE_LIFETIME_BUCKETS] = {offsetof(struct rec_lone, lifetime_bucket), is_number,
                                    make_lifetime, propose_lifetime, is_bucket_after},
};

bool is_history_table(enum rec_table_index index)
{
    return index < REC_TABLE_COUNT && rules[index].says != NULL;
}

static uint32_t word_of(enum rec_table_index index, const struct rec_lone *lone)
{
    uint32_t word = 0;
    memcpy(&word, (const char *)lone + rules[index].offset, sizeof(word));
    return word;
}

bool history_says(enum rec_table_index index,
                  const struct rec_lone *lone,
                  const struct rec_row *row)
{
    return rules[index].says(row, word_of(index, lone));
}

bool history_imply(enum rec_table_index index,
                   const struct rec_lone *lone,
                   const struct rec_row *row,
                   uint32_t number,
                   void *out)
{
    const bool says = history_says(index, lone, row);
    if (says) {
        rules[index].make(row, number, word_of(index, lone), out);
    }
    return says;
}

bool history_propose(enum rec_table_index index,
                     const void *entry,
                     const struct rec_row *row,
                     uint32_t number,
                     struct rec_lone *lone)
{
    struct rec_cell implied; // the largest of them
    const uint32_t word = rules[index].propose(entry);
    if (!rules[index].says(row, word)) {
        return false;
    }
    rules[index].make(row, number, word, &implied);
    if (memcmp(&implied, entry, rec_tables[index].entry_bytes) != 0) {
        return false;
    }
    memcpy((char *)lone + rules[index].offset, &word, sizeof(word));
    return true;
}

bool history_is_after(enum rec_table_index index, const void *entry, const void *before)
{
    return rules[index].is_after(entry, before);
}

static bool is_dense(uint32_t slice)
{
    return slice < FLOW_SLICES_MAX;
}

enum err
history_flow_begin(struct history_flow *flow, const struct rec_cohort *cohorts, size_t count)
{
    uint32_t end = 0;
    flow->is_dense = true;
    for (size_t i = 0; i < count; i++) {
        const uint32_t born = cohorts[i].born_slice;
        const uint32_t freed = cohorts[i].freed_slice != REC_NONE ? cohorts[i].freed_slice : born;
        const uint32_t later = born > freed ? born : freed;
        flow->is_dense = flow->is_dense && is_dense(later);
        end = is_dense(later) && later >= end ? later + 1 : end;
    }
    flow_change_vec_clear(&flow->changes);
    TRY(flow_change_vec_resize(&flow->changes, end));
    flow->cohorts = cohorts;
    flow->cohort_count = count;
    flow->first_cohort = 0;
    flow->next_cohort = 0;
    flow->row = REC_NONE;
    return ERR_OK;
}

void history_flow_release(struct history_flow *flow)
{
    flow_change_vec_release(&flow->changes);
}

static void add_change(struct history_flow *flow, uint32_t slice, struct flow_change change)
{
    if (slice < flow->changes.len) {
        flow->changes.items[slice].blocks += change.blocks;
        flow->changes.items[slice].bytes += change.bytes;
    }
}

static void add_cohort(struct history_flow *flow, const struct rec_cohort *cohort)
{
    const struct flow_change left = {.blocks = cohort->blocks, .bytes = cohort->bytes};
    const struct flow_change came = {.blocks = 0 - left.blocks, .bytes = 0 - left.bytes};
    add_change(flow, cohort->born_slice, left);
    add_change(flow, cohort->freed_slice, came);
}

// Forgets the row under way.
static void end_row(struct history_flow *flow)
{
    for (; flow->first_cohort < flow->next_cohort; flow->first_cohort++) {
        const struct rec_cohort *cohort = flow->cohorts + flow->first_cohort;
        if (cohort->born_slice < flow->changes.len) {
            flow->changes.items[cohort->born_slice] = (struct flow_change){0};
        }
        if (cohort->freed_slice < flow->changes.len) {
            flow->changes.items[cohort->freed_slice] = (struct flow_change){0};
        }
    }
}

// Gathers what the cohorts of a row change. Rows before it are left behind.
static void begin_row(struct history_flow *flow, uint32_t row)
{
    end_row(flow);
    while (flow->next_cohort < flow->cohort_count && flow->cohorts[flow->next_cohort].row < row) {
        flow->next_cohort++;
    }
    flow->first_cohort = flow->next_cohort;
    while (flow->next_cohort < flow->cohort_count && flow->cohorts[flow->next_cohort].row == row) {
        add_cohort(flow, flow->cohorts + flow->next_cohort++);
    }
    flow->row = row;
}

struct flow_change history_flow_at(struct history_flow *flow, const struct rec_cell *cell)
{
    if (flow->row != cell->row) {
        begin_row(flow, cell->row);
    }
    return cell->slice < flow->changes.len ? flow->changes.items[cell->slice]
                                           : (struct flow_change){0};
}
