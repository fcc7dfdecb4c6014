// SPDX-License-Identifier: MIT
// event_tally: see event_tally.h.
#include "formats/import/event_tally.h"

#include "base/minmax.h"

enum {
    BORN_BITS = 10,  // of a slice number in a cohort's key
    FREED_BITS = 11, // the same, and all bits set for never
};

void tally_release(struct event_tally *t)
{
    tally_row_vec_release(&t->rows);
    tally_kind_vec_release(&t->kinds);
    tally_cell_vec_release(&t->pool);
    lifetime_buckets_vec_release(&t->lifetimes);
    map_u64_release(&t->lifetime_of);
    cohorts_vec_release(&t->cohorts);
    map_u64_release(&t->cohort_of);
}

enum err tally_row(struct event_tally *t,
                   struct recording_builder *b,
                   uint32_t thread,
                   uint32_t node,
                   uint32_t *out_row)
{
    uint32_t row;
    TRY(tally_row_vec_reserve(&t->rows, 1));
    TRY(recording_builder_row(b, thread, node, &row));
    t->rows.items[t->rows.len++] =
        (struct tally_row){.cell = {.slice = t->slice, .older = REC_NONE},
                           .stamp = t->stamp,
                           .peak_number = t->peak_number};
    *out_row = row;
    return ERR_OK;
}

enum err tally_kind(struct event_tally *t, uint32_t row, uint64_t size_bytes)
{
    if (t->kinds.len >= REC_NONE) {
        return ERR_LIMIT;
    }
    return tally_kind_vec_push(&t->kinds,
                               (struct tally_kind){.size_bytes = size_bytes, .row = row});
}

static bool is_empty(const struct tally_cell *cell)
{
    return cell->allocations == 0 && cell->frees == 0;
}

enum err tally_catch_up(struct event_tally *t, struct tally_row *row)
{
    if (row->peak_number != t->peak_number) {
        row->peak_bytes = row->live_bytes;
        row->peak_blocks = row->live_blocks;
        row->peak_number = t->peak_number;
    }
    if (row->cell.slice != t->slice && is_empty(&row->cell)) {
        row->cell.slice = t->slice;
    } else if (row->cell.slice != t->slice) {
        if (t->pool.len >= REC_NONE) {
            return ERR_LIMIT;
        }
        TRY(tally_cell_vec_push(&t->pool, row->cell));
        row->cell = (struct tally_cell){.slice = t->slice, .older = (uint32_t)(t->pool.len - 1)};
    }
    row->stamp = t->stamp;
    return ERR_OK;
}

static void add_cell(struct tally_cell *sum, const struct tally_cell *part)
{
    sum->allocations += part->allocations;
    sum->allocated_bytes += part->allocated_bytes;
    sum->frees += part->frees;
    sum->freed_bytes += part->freed_bytes;
    sum->temporary += part->temporary;
}

// Moves a row's cells into `pool`, with neighbours merged.
static MUST_USE enum err
merge_row(struct tally_row *row, const struct tally_cell_vec *old, struct tally_cell_vec *pool)
{
    uint32_t next = row->cell.older;
    uint32_t last = REC_NONE; // in the new pool; REC_NONE: the row's own cell
    row->cell.slice >>= 1;
    row->cell.older = REC_NONE;
    while (next != REC_NONE) {
        struct tally_cell cell = old->items[next];
        struct tally_cell *newer = last == REC_NONE ? &row->cell : &pool->items[last];
        next = cell.older;
        cell.slice >>= 1;
        if (newer->slice == cell.slice) {
            add_cell(newer, &cell);
            continue;
        }
        cell.older = REC_NONE;
        newer->older = (uint32_t)pool->len; // before the push moves the pool
        TRY(tally_cell_vec_push(pool, cell));
        last = (uint32_t)(pool->len - 1);
    }
    return ERR_OK;
}

static MUST_USE enum err merge_cells(struct event_tally *t)
{
    CLEANUP(tally_cell_vec_release) struct tally_cell_vec pool = {0};
    TRY(tally_cell_vec_reserve(&pool, t->pool.len)); // never more: the pushes cannot fail
    for (size_t i = 0; i < t->rows.len; i++) {
        TRY(merge_row(&t->rows.items[i], &t->pool, &pool));
    }
    struct tally_cell_vec old = t->pool;
    t->pool = pool;
    pool = old;
    return ERR_OK;
}

static uint64_t cohort_key(const struct rec_cohort *cohort)
{
    return ((uint64_t)cohort->row << BORN_BITS | cohort->born_slice) << FREED_BITS |
           (cohort->freed_slice & ((1 << FREED_BITS) - 1));
}

static MUST_USE enum err add_cohort(struct event_tally *t, const struct rec_cohort *cohort)
{
    uint32_t *known = map_u64_find(&t->cohort_of, cohort_key(cohort));
    if (known != NULL && cohort->blocks > UINT32_MAX - t->cohorts.items[*known].blocks) {
        return ERR_LIMIT;
    }
    if (known != NULL) {
        t->cohorts.items[*known].blocks += cohort->blocks;
        t->cohorts.items[*known].bytes += cohort->bytes;
        return ERR_OK;
    }
    if (t->cohorts.len >= REC_NONE) {
        return ERR_LIMIT;
    }
    TRY(cohorts_vec_reserve(&t->cohorts, 1));
    TRY(map_u64_put(&t->cohort_of, cohort_key(cohort), (uint32_t)t->cohorts.len));
    t->cohorts.items[t->cohorts.len++] = *cohort;
    return ERR_OK;
}

static MUST_USE enum err merge_cohorts(struct event_tally *t)
{
    CLEANUP(cohorts_vec_release) struct cohorts_vec old = t->cohorts;
    t->cohorts = (struct cohorts_vec){0};
    map_u64_clear(&t->cohort_of);
    for (size_t i = 0; i < old.len; i++) {
        struct rec_cohort cohort = old.items[i];
        cohort.born_slice >>= 1;
        cohort.freed_slice >>= 1;
        if (cohort.born_slice != cohort.freed_slice) {
            TRY(add_cohort(t, &cohort));
        }
    }
    return ERR_OK;
}

// Halves a series of highest values.
static void merge_highest(uint64_t values[TALLY_SLICES_MAX])
{
    for (size_t i = 0; i < TALLY_SLICES_MAX; i++) {
        values[i] = i < TALLY_SLICES_MAX / 2 ? max_u64(values[2 * i], values[2 * i + 1]) : 0;
    }
}

static MUST_USE enum err merge_slices(struct event_tally *t)
{
    TRY(merge_cells(t));
    TRY(merge_cohorts(t));
    merge_highest(t->slice_max_bytes);
    merge_highest(t->slice_rss_bytes);
    t->slice >>= 1;
    t->slice_shift++;
    return ERR_OK;
}

enum err tally_time(struct event_tally *t, uint64_t now_ms)
{
    if (now_ms <= t->now_ms) {
        return ERR_OK;
    }
    t->now_ms = now_ms;
    while (now_ms >> t->slice_shift >= TALLY_SLICES_MAX) {
        TRY(merge_slices(t));
        t->stamp++;
    }
    for (uint32_t slice = (uint32_t)(now_ms >> t->slice_shift); t->slice < slice;) {
        t->slice_max_bytes[++t->slice] = t->live_bytes;
        t->stamp++;
    }
    return ERR_OK;
}

void tally_rss(struct event_tally *t, uint64_t rss_bytes)
{
    t->slice_rss_bytes[t->slice] = max_u64(t->slice_rss_bytes[t->slice], rss_bytes);
}

enum err tally_cohort(struct event_tally *t, uint32_t row, uint64_t born_ms, uint64_t size_bytes)
{
    struct rec_cohort cohort = {.row = row,
                                .born_slice = (uint32_t)(born_ms >> t->slice_shift),
                                .freed_slice = t->slice,
                                .blocks = 1,
                                .bytes = size_bytes};
    return cohort.born_slice == cohort.freed_slice ? ERR_OK : add_cohort(t, &cohort);
}

// Adds to the histogram in `buckets`, whose index by (row, bucket) is `index`.
static MUST_USE enum err add_bucket(struct lifetime_buckets_vec *buckets,
                                    struct map_u64 *index,
                                    const struct rec_bucket *add)
{
    uint64_t key = (uint64_t)add->row << 8 | add->bucket; // REC_BUCKET_COUNT is below 256
    const uint32_t *known = map_u64_find(index, key);
    if (known != NULL) {
        buckets->items[*known].count += add->count;
        buckets->items[*known].bytes += add->bytes;
        return ERR_OK;
    }
    if (buckets->len >= REC_NONE) {
        return ERR_LIMIT;
    }
    TRY(lifetime_buckets_vec_reserve(buckets, 1));
    TRY(map_u64_put(index, key, (uint32_t)buckets->len));
    buckets->items[buckets->len++] = *add;
    return ERR_OK;
}

enum err tally_lifetime(struct event_tally *t, uint32_t row, uint64_t born_ms, uint64_t size_bytes)
{
    struct rec_bucket bucket = {
        .row = row, .bucket = rec_bucket_of(t->now_ms - born_ms), .count = 1, .bytes = size_bytes};
    return add_bucket(&t->lifetimes, &t->lifetime_of, &bucket);
}

enum err tally_survivors(
    struct event_tally *t, uint32_t row, uint64_t born_ms, uint64_t count, uint64_t size_bytes)
{
    struct rec_cohort cohort = {.row = row,
                                .born_slice = (uint32_t)(born_ms >> t->slice_shift),
                                .freed_slice = REC_NONE,
                                .blocks = (uint32_t)count,
                                .bytes = count * size_bytes};
    return count > UINT32_MAX ? ERR_LIMIT : add_cohort(t, &cohort);
}

uint64_t tally_bytes(const struct event_tally *t)
{
    enum {
        MAP_SLOT_BYTES = sizeof(uint64_t) + sizeof(uint32_t),
    };
    uint64_t slots = t->lifetime_of.slot_count + t->cohort_of.slot_count;
    return t->rows.cap * (sizeof(struct tally_row) + sizeof(struct rec_row)) +
           t->kinds.cap * sizeof(struct tally_kind) + t->pool.cap * sizeof(struct tally_cell) +
           t->lifetimes.cap * sizeof(struct rec_bucket) +
           t->cohorts.cap * sizeof(struct rec_cohort) + slots * MAP_SLOT_BYTES;
}

// A row's cells are linked from the newest to the oldest.
static void put_oldest_first(struct cells_vec *cells, size_t first)
{
    for (size_t last = cells->len; first + 1 < last; first++) {
        struct rec_cell cell = cells->items[first];
        cells->items[first] = cells->items[--last];
        cells->items[last] = cell;
    }
}

static MUST_USE enum err
finish_row(const struct event_tally *t, struct recording_builder *b, uint32_t number)
{
    size_t first_cell = b->cells.len;
    const struct tally_row *from = &t->rows.items[number];
    struct rec_row *row = &b->rows.items[number];
    row->temporary_bytes = from->temporary_bytes;
    row->peak_bytes = from->peak_bytes;
    row->peak_blocks = from->peak_blocks;
    row->own_peak_bytes = from->own_peak_bytes;
    const struct tally_cell *cell = &from->cell;
    for (;;) {
        if (!is_empty(cell)) {
            struct rec_slice *slice = &b->slices.items[cell->slice];
            TRY(cells_vec_push(&b->cells,
                               (struct rec_cell){.row = number,
                                                 .slice = cell->slice,
                                                 .allocations = cell->allocations,
                                                 .allocated_bytes = cell->allocated_bytes,
                                                 .frees = cell->frees,
                                                 .freed_bytes = cell->freed_bytes,
                                                 .temporary = cell->temporary}));
            row->allocations += cell->allocations;
            row->allocated_bytes += cell->allocated_bytes;
            row->frees += cell->frees;
            row->freed_bytes += cell->freed_bytes;
            row->temporary += cell->temporary;
            slice->allocations += cell->allocations;
            slice->allocated_bytes += cell->allocated_bytes;
            slice->frees += cell->frees;
            slice->freed_bytes += cell->freed_bytes;
            slice->temporary += cell->temporary;
        }
        if (cell->older == REC_NONE) {
            put_oldest_first(&b->cells, first_cell);
            return ERR_OK;
        }
        cell = &t->pool.items[cell->older];
    }
}

static MUST_USE enum err finish_slices(const struct event_tally *t, struct recording_builder *b)
{
    uint64_t live_bytes = 0;
    for (uint32_t i = 0; i <= t->slice; i++) {
        struct rec_slice *slice = &b->slices.items[i];
        live_bytes += slice->allocated_bytes - slice->freed_bytes;
        slice->live_bytes = live_bytes;
        slice->live_max_bytes = t->slice_max_bytes[i];
        uint64_t rss_bytes = t->slice_rss_bytes[i];
        struct rec_rss_sample sample = {.time_ms = (uint64_t)i << t->slice_shift,
                                        .rss_bytes = rss_bytes};
        if (rss_bytes > 0) {
            TRY(rss_samples_vec_push(&b->rss_samples, sample));
            uint64_t *highest = &b->processes.items[0].peak_rss_bytes;
            *highest = max_u64(*highest, rss_bytes);
        }
    }
    return ERR_OK;
}

static MUST_USE enum err finish_sizes(const struct event_tally *t, struct recording_builder *b)
{
    CLEANUP(map_u64_release) struct map_u64 index = {0};
    CLEANUP(lifetime_buckets_vec_release) struct lifetime_buckets_vec sizes = {0};
    for (size_t i = 0; i < t->kinds.len; i++) {
        const struct tally_kind *kind = &t->kinds.items[i];
        struct rec_bucket bucket = {.row = kind->row,
                                    .bucket = rec_bucket_of(kind->size_bytes),
                                    .count = kind->allocations,
                                    .bytes = kind->allocations * kind->size_bytes};
        if (kind->allocations > 0) {
            TRY(add_bucket(&sizes, &index, &bucket));
        }
    }
    b->size_buckets = (struct size_buckets_vec){sizes.items, sizes.len, sizes.cap};
    sizes = (struct lifetime_buckets_vec){0};
    return ERR_OK;
}

enum err tally_finish(struct event_tally *t, struct recording_builder *b)
{
    t->peak_number += t->is_rising;
    t->stamp++;
    t->is_rising = false;
    b->slice_ms = UINT64_C(1) << t->slice_shift;
    TRY(slices_vec_resize(&b->slices, (size_t)t->slice + 1));
    TRY(cells_vec_reserve(&b->cells, t->pool.len + t->rows.len));
    for (size_t i = 0; i < t->rows.len; i++) {
        TRY(tally_catch_up(t, &t->rows.items[i]));
        TRY(finish_row(t, b, (uint32_t)i));
    }
    TRY(finish_slices(t, b));
    TRY(finish_sizes(t, b));
    for (size_t i = 0; i < t->cohorts.len; i++) {
        TRY(cohorts_vec_push(&b->cohorts, t->cohorts.items[i]));
    }
    b->lifetime_buckets = t->lifetimes;
    t->lifetimes = (struct lifetime_buckets_vec){0};
    b->totals.peak_time_ms = t->peak_time_ms;
    b->processes.items[0].peak_bytes = t->peak_bytes;
    b->processes.items[0].end_ms = t->now_ms;
    b->threads.items[0].end_ms = t->now_ms;
    b->meta.runtime_ms = t->now_ms;
    recording_builder_sum(b);
    return ERR_OK;
}
