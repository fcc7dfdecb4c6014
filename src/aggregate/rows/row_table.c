// SPDX-License-Identifier: MIT
#include "aggregate/rows/row_table.h"

#include <stddef.h>

#include "base/hash.h"
#include "base/minmax.h"

void row_table_release(struct row_table *table)
{
    for (size_t i = 0; i < table->extras.len; i++) {
        bucket_set_release(&table->extras.items[i].histograms[ROW_ALLOCATED]);
        bucket_set_release(&table->extras.items[i].histograms[ROW_FREED]);
    }
    rec_row_vec_release(&table->rows);
    row_extra_vec_release(&table->extras);
    id_index_release(&table->index);
    u32_vec_release(&table->latest_of_nodes);
    cell_table_release(&table->cells);
    cohort_table_release(&table->cohorts);
}

size_t row_table_bytes(const struct row_table *table)
{
    size_t bytes = table->rows.cap * sizeof(struct rec_row) +
                   table->extras.cap * sizeof(struct row_extra) +
                   (table->index.slot_count + table->latest_of_nodes.cap) * sizeof(uint32_t) +
                   cell_table_bytes(&table->cells) + cohort_table_bytes(&table->cohorts);
    for (size_t i = 0; i < table->extras.len; i++) {
        bytes += bucket_set_bytes(&table->extras.items[i].histograms[ROW_ALLOCATED]) +
                 bucket_set_bytes(&table->extras.items[i].histograms[ROW_FREED]);
    }
    return bytes;
}

static uint64_t row_hash(const void *thing)
{
    const struct rec_row *row = thing;
    return hash_mix((uint64_t)row->thread << 32 | row->node);
}

static bool is_same_row(const void *one, const void *other)
{
    const struct rec_row *a = one;
    const struct rec_row *b = other;
    return a->thread == b->thread && a->node == b->node;
}

static const struct id_kind row_kind = {row_hash, is_same_row, sizeof(struct rec_row)};

bool row_table_has(const struct row_table *table, uint32_t thread, uint32_t node)
{
    const struct rec_row wanted = {.thread = thread, .node = node};
    return id_index_find(&table->index, &row_kind, table->rows.items, &wanted) != ID_NONE;
}

static enum err
find_or_add(struct row_table *table, uint32_t thread, uint32_t node, uint32_t *out_row)
{
    const struct rec_row wanted = {.thread = thread, .node = node};
    TRY(rec_row_vec_reserve(&table->rows, 1));
    TRY(row_extra_vec_reserve(&table->extras, 1));
    TRY(id_index_number(&table->index, &row_kind, table->rows.items, &wanted, table->rows.len,
                        out_row));
    if (*out_row == table->rows.len) {
        table->rows.items[table->rows.len++] = wanted;
        table->extras.items[table->extras.len++] = (struct row_extra){.cells.latest = CELL_NONE};
    }
    return ERR_OK;
}

enum err row_table_get(struct row_table *table, uint32_t thread, uint32_t node, uint32_t *out_row)
{
    struct u32_vec *latest = &table->latest_of_nodes;
    while (latest->len <= node) {
        TRY(u32_vec_push(latest, REC_NONE));
    }
    const uint32_t known = latest->items[node];
    if (known != REC_NONE && table->rows.items[known].thread == thread) {
        *out_row = known;
        return ERR_OK;
    }
    TRY(find_or_add(table, thread, node, out_row));
    latest->items[node] = *out_row;
    return ERR_OK;
}

static struct bucket_set *histogram_of(struct row_extra *extra, const struct row_note *note)
{
    return &extra->histograms[note->change == ROW_FREED];
}

// Prefetch the count of `note`; its row is in the cache.
static inline void prefetch_count(const struct row_table *table, const struct row_note *note)
{
    bucket_set_prefetch(histogram_of(table->extras.items + note->row, note), note->bucket);
}

// Merge the share of the latest peak, as session/books/peak_share.h: what the row held before the
// entry's events was before or since its own newest peak.
static void merge_peak(struct rec_row *row, struct row_extra *extra, const struct book_entry *entry)
{
    const uint64_t live_bytes = row->allocated_bytes - row->freed_bytes;
    const uint64_t live_blocks = row->allocations - row->frees;
    if (entry->peak_number > extra->peak_number) {
        row->peak_bytes = live_bytes + (uint64_t)entry->before_bytes;
        row->peak_blocks = live_blocks + (uint64_t)(int64_t)entry->before_blocks;
        extra->peak_number = entry->peak_number;
    } else if (entry->peak_number == extra->peak_number) {
        row->peak_bytes += (uint64_t)entry->before_bytes;
        row->peak_blocks += (uint64_t)(int64_t)entry->before_blocks;
    } else {
        const struct book_net net = book_entry_net(entry);
        row->peak_bytes += (uint64_t)net.bytes;
        row->peak_blocks += (uint64_t)net.blocks;
    }
}

static enum err add_cells(struct bucket_set *set,
                          const uint64_t *cells,
                          const uint8_t *buckets,
                          uint32_t count,
                          uint32_t weight,
                          uint64_t *blocks,
                          uint64_t *bytes)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t cell_blocks = (uint64_t)book_cell_count(cells[i]) * weight;
        const uint64_t cell_bytes = book_cell_bytes(cells[i]) * weight;
        TRY(bucket_set_add(set, buckets[i], cell_bytes, *blocks, *bytes));
        bucket_set_add_more(set, buckets[i], cell_blocks - 1, 0);
        *blocks += cell_blocks;
        *bytes += cell_bytes;
    }
    return ERR_OK;
}

enum err row_table_add_entry(struct row_table *table, uint32_t row, const struct book_entry *entry)
{
    struct rec_row *r = table->rows.items + row;
    struct row_extra *extra = table->extras.items + row;
    TRY(cell_table_touch(&table->cells, &extra->cells, r, row_table_step(table)));
    merge_peak(r, extra, entry);
    TRY(add_cells(&extra->histograms[ROW_ALLOCATED], entry->sizes, entry->size_buckets,
                  entry->size_count, entry->weight, &r->allocations, &r->allocated_bytes));
    TRY(add_cells(&extra->histograms[ROW_FREED], entry->lives, entry->life_buckets,
                  entry->life_count, entry->weight, &r->frees, &r->freed_bytes));
    // What it held between its events is unknown, but one of its blocks was as large as the mean.
    for (uint32_t i = 0; i < entry->size_count; i++) {
        const uint64_t mean = book_cell_bytes(entry->sizes[i]) / book_cell_count(entry->sizes[i]);
        r->own_peak_bytes = max_u64(r->own_peak_bytes, mean);
    }
    r->own_peak_bytes = max_u64(r->own_peak_bytes, r->allocated_bytes - r->freed_bytes);
    return ERR_OK;
}

static enum err count_temporary(struct row_table *table, const struct row_note *note)
{
    struct rec_row *r = table->rows.items + note->row;
    TRY(cell_table_touch(&table->cells, &table->extras.items[note->row].cells, r,
                         row_table_step(table)));
    r->temporary += note->count;
    r->temporary_bytes += note->count * note->size_bytes;
    return ERR_OK;
}

enum err row_table_count(struct row_table *table)
{
    const uint32_t count = table->note_count;
    const uint32_t step = row_table_step(table);
    enum err result = ERR_OK;
    table->note_count = 0;
    for (uint32_t i = 0; i < count && row_table_needs_prefetch(table); i++) {
        prefetch_count(table, table->notes + i);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct row_note *note = table->notes + i;
        const enum err err = LIKELY(note->change <= ROW_FREED)
                                 ? row_table_count_block(table, note, step)
                                 : count_temporary(table, note);
        if (UNLIKELY(err != ERR_OK)) { // the others still count
            result = result == ERR_OK ? err : result;
        }
    }
    return result;
}

static void merge_cells(struct row_table *table, uint32_t shift)
{
    for (size_t i = 0; i < table->rows.len; i++) {
        cell_table_merge_row(&table->cells, &table->extras.items[i].cells, shift);
    }
}

// Merge cells and cohorts. Those that are coarser than slices need not merge; they only become less
// coarse in comparison.
static enum err slices_merged(struct row_table *table, uint32_t shift)
{
    const uint32_t of_cells = min_u64(table->cell_shift, shift);
    const uint32_t of_cohorts = min_u64(table->cohort_shift, shift);
    table->cell_shift -= of_cells;
    table->cohort_shift -= of_cohorts;
    if (of_cohorts < shift) {
        TRY(cohort_table_merge_slices(&table->cohorts, shift - of_cohorts));
    }
    if (of_cells < shift) {
        merge_cells(table, shift - of_cells);
    }
    return ERR_OK;
}

static bool is_too_many(const struct row_table *table, size_t count, size_t max)
{
    return count > max + table->rows.len / 8;
}

// Few rows need few cells: 256 of them still have 195 each. Many share the maximum.
static size_t cells_max(const struct row_table *table)
{
    const size_t few = table->cells_max * 3 / 16 + table->rows.len * 3;
    return min_u64(few, table->cells_max);
}

static enum err coarsen_cohorts(struct row_table *table)
{
    table->cohort_shift++;
    return cohort_table_merge_slices(&table->cohorts, 1);
}

enum err row_table_advance(struct row_table *table, uint32_t slice, uint32_t shift)
{
    TRY(row_table_count(table));
    if (shift > 0) {
        TRY(slices_merged(table, shift));
    }
    table->slice = slice;
    while (is_too_many(table, table->cohorts.cohorts.len, table->cohorts_max) &&
           slice >> table->cohort_shift > 0) {
        TRY(coarsen_cohorts(table));
    }
    while (is_too_many(table, cell_table_count(&table->cells), cells_max(table)) &&
           row_table_step(table) > 0) {
        if (table->cohort_shift == table->cell_shift) {
            TRY(coarsen_cohorts(table));
        }
        table->cell_shift++;
        merge_cells(table, 1);
    }
    return ERR_OK;
}

static enum err
join_rows(struct row_table *table, uint32_t into, struct rec_row *row, struct row_extra *extra)
{
    struct rec_row *to = table->rows.items + into;
    struct row_extra *to_extra = table->extras.items + into;
    TRY(cell_table_join(&table->cells, &to_extra->cells, to, &extra->cells, row));
    TRY(bucket_set_join(&to_extra->histograms[ROW_ALLOCATED], to->allocations, to->allocated_bytes,
                        &extra->histograms[ROW_ALLOCATED], row->allocations, row->allocated_bytes));
    TRY(bucket_set_join(&to_extra->histograms[ROW_FREED], to->frees, to->freed_bytes,
                        &extra->histograms[ROW_FREED], row->frees, row->freed_bytes));
    bucket_set_release(&extra->histograms[ROW_ALLOCATED]);
    bucket_set_release(&extra->histograms[ROW_FREED]);
    to->allocations += row->allocations;
    to->allocated_bytes += row->allocated_bytes;
    to->frees += row->frees;
    to->freed_bytes += row->freed_bytes;
    to->temporary += row->temporary;
    to->temporary_bytes += row->temporary_bytes;
    to->peak_bytes += row->peak_bytes;
    to->peak_blocks += row->peak_blocks;
    const uint64_t live_bytes = to->allocated_bytes - to->freed_bytes;
    to->own_peak_bytes = max_u64(max_u64(to->own_peak_bytes, row->own_peak_bytes),
                                 max_u64(to->peak_bytes, live_bytes));
    return ERR_OK;
}

enum err row_table_join(struct row_table *table, uint32_t *rows)
{
    const size_t count = table->rows.len;
    id_index_clear(&table->index);
    u32_vec_clear(&table->latest_of_nodes);
    table->rows.len = 0;
    table->extras.len = 0;
    for (size_t i = 0; i < count; i++) {
        struct rec_row row = table->rows.items[i];
        struct row_extra extra = table->extras.items[i];
        uint32_t id;
        TRY(id_index_number(&table->index, &row_kind, table->rows.items, &row, table->rows.len,
                            &id));
        if (id < table->rows.len) {
            TRY(join_rows(table, id, &row, &extra));
        } else {
            table->rows.items[table->rows.len++] = row;
            table->extras.items[table->extras.len++] = extra;
        }
        rows[i] = id;
    }
    return cohort_table_renumber(&table->cohorts, rows);
}

void row_table_commit_peak(struct row_table *table,
                           uint32_t row,
                           bool is_alive,
                           uint64_t end_number)
{
    struct rec_row *r = table->rows.items + row;
    struct row_extra *extra = table->extras.items + row;
    // The books of a thread alone may have a later peak than the sum.
    if (extra->peak_number >= table->peak_number) {
        return;
    }
    if (is_alive || end_number == table->peak_number) {
        row_commit_peak(r, extra, table->peak_number);
        return;
    }
    r->peak_bytes = 0;
    r->peak_blocks = 0;
    extra->peak_number = table->peak_number;
}
