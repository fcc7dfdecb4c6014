// SPDX-License-Identifier: MIT
#include "profile/tables/histogram.h"

#include "base/compiler.h"
#include "base/minmax.h"
#include "base/order.h"
#include "profile/accuracy/sampling.h"

// One of the recording's two tables of buckets.
struct bucket_table {
    const struct rec_bucket *buckets;
    size_t count;
    const uint32_t *starts;    // of rows
    struct bucket_range range; // of the filter
};

// `starts` are filled, and must live as long as the table.
static MUST_USE enum err table_of(const struct selection *selection,
                                  enum histogram_of of,
                                  struct u32_vec *starts,
                                  struct bucket_table *out)
{
    const struct recording *recording = &selection->profile->recording;
    struct bucket_table table = {recording->size_buckets, recording->size_bucket_count, NULL,
                                 selection->sizes};
    if (of == HISTOGRAM_LIFETIMES) {
        table = (struct bucket_table){recording->lifetime_buckets, recording->lifetime_bucket_count,
                                      NULL, selection->lifetimes};
    }
    TRY(rec_row_starts(table.buckets, table.count, sizeof(table.buckets[0]), recording->row_count,
                       starts));
    table.starts = starts->items;
    *out = table;
    return ERR_OK;
}

// The buckets of one row that pass.
static struct bucket_table buckets_of_row(struct bucket_table table, uint32_t row)
{
    uint32_t first = table.starts[row];
    const uint32_t last = table.starts[row + 1];
    while (first < last && table.buckets[first].bucket < table.range.first) {
        first++;
    }
    uint32_t end = first;
    while (end < last && table.buckets[end].bucket < table.range.end) {
        end++;
    }
    return (struct bucket_table){table.buckets + first, end - first, NULL, table.range};
}

static void add_row(struct bucket_table table, uint32_t row, struct bucket_amount *amounts)
{
    struct bucket_table buckets = buckets_of_row(table, row);
    for (size_t i = 0; i < buckets.count; i++) {
        struct bucket_amount *amount = &amounts[buckets.buckets[i].bucket];
        amount->count += buckets.buckets[i].count;
        amount->bytes += buckets.buckets[i].bytes;
    }
}

static void add_group(const struct row_groups *groups,
                      struct bucket_table table,
                      uint32_t group,
                      struct bucket_amount *amounts)
{
    for (uint32_t i = groups->row_first.items[group]; i < groups->row_first.items[group + 1]; i++) {
        add_row(table, groups->rows.items[i], amounts);
    }
}

// Add the sizes of a row's blocks to the buckets that they are in. A bucket of lifetimes may hold
// any of them.
static void add_row_sizes(const struct recording *recording,
                          struct bucket_table table,
                          uint32_t row,
                          bool are_sizes,
                          struct sampled_sizes *sums)
{
    const struct bucket_table buckets = buckets_of_row(table, row);
    const struct sampled_sizes any = sampled_sizes_of_row(recording, row);
    for (size_t i = 0; i < buckets.count; i++) {
        const struct rec_bucket *bucket = &buckets.buckets[i];
        const struct sampled_sizes sizes = are_sizes ? sampled_sizes_of_bucket(bucket) : any;
        sampled_sizes_add(&sums[bucket->bucket], &sizes);
    }
}

static MUST_USE enum err add_sizes(const struct selection *selection,
                                   enum histogram_of of,
                                   struct bucket_table table,
                                   struct histogram *histogram)
{
    const struct recording *recording = &selection->profile->recording;
    struct sampled_sizes sums[REC_BUCKET_COUNT] = {0};
    const bool is_sampled = sampling_has_errors(recording);
    for (size_t i = 0; is_sampled && i < selection->rows.len; i++) {
        add_row_sizes(recording, table, selection->rows.items[i], of == HISTOGRAM_SIZES, sums);
    }
    TRY(sampled_sizes_vec_resize(&histogram->sizes, histogram->total.len));
    for (size_t i = 0; i < histogram->sizes.len; i++) {
        histogram->sizes.items[i] = sums[histogram->first_bucket + i];
    }
    return ERR_OK;
}

struct costs histogram_costs(const struct histogram *histogram, size_t index)
{
    const struct bucket_amount *amount = &histogram->total.items[index];
    return (struct costs){
        .values = {[COST_ALLOCATIONS] = amount->count, [COST_ALLOCATED_BYTES] = amount->bytes},
        .sizes = histogram->sizes.items[index]};
}

struct ranked_group {
    uint32_t group;
    uint64_t score;
};

DEFINE_VEC(ranked_group_vec, struct ranked_group);

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked_group *a = left;
    const struct ranked_group *b = right;
    return order_u64(b->score, a->score) ?: order_u64(a->group, b->group);
}

// Rank the groups, and add all their blocks to `total`.
static MUST_USE enum err rank_groups(const struct row_groups *groups,
                                     struct bucket_table table,
                                     bool by_bytes,
                                     struct cancel *cancel,
                                     struct bucket_amount *total,
                                     struct ranked_group_vec *out)
{
    for (uint32_t group = 0; group < groups->groups.len; group++) {
        TRY(cancel_step(cancel));
        struct bucket_amount amounts[REC_BUCKET_COUNT] = {0};
        add_group(groups, table, group, amounts);
        struct ranked_group ranked = {.group = group};
        for (size_t i = 0; i < REC_BUCKET_COUNT; i++) {
            ranked.score += by_bytes ? amounts[i].bytes : amounts[i].count;
            total[i].count += amounts[i].count;
            total[i].bytes += amounts[i].bytes;
        }
        if (ranked.score > 0) {
            TRY(ranked_group_vec_push(out, ranked));
        }
    }
    ranked_group_vec_sort(out, compare_ranked);
    return ERR_OK;
}

// Copy the used buckets.
static MUST_USE enum err keep_used(const struct histogram *histogram,
                                   const struct bucket_amount *amounts,
                                   size_t count,
                                   struct bucket_amount_vec *out)
{
    TRY(bucket_amount_vec_resize(out, count));
    for (size_t i = 0; i < count; i++) {
        out->items[i] = amounts[histogram->first_bucket + i];
    }
    return ERR_OK;
}

static void subtract_amounts(struct bucket_amount_vec *from, const struct bucket_amount_vec *part)
{
    for (size_t i = 0; i < from->len; i++) {
        from->items[i].count -= part->items[i].count;
        from->items[i].bytes -= part->items[i].bytes;
    }
}

static MUST_USE enum err fill_histogram(struct histogram *histogram,
                                        struct bucket_table table,
                                        const struct bucket_amount *total,
                                        const struct ranked_group_vec *ranked)
{
    uint32_t first = 0;
    uint32_t end = REC_BUCKET_COUNT;
    while (first < end && total[first].count == 0) {
        first++;
    }
    while (end > first && total[end - 1].count == 0) {
        end--;
    }
    histogram->first_bucket = first;
    TRY(keep_used(histogram, total, end - first, &histogram->total));
    TRY(keep_used(histogram, total, end - first, &histogram->rest));
    for (size_t i = 0; i < ranked->len; i++) {
        struct bucket_amount own[REC_BUCKET_COUNT] = {0};
        add_group(&histogram->groups, table, ranked->items[i].group, own);
        TRY(histogram_entry_vec_push(&histogram->top,
                                     (struct histogram_entry){.group = ranked->items[i].group}));
        struct histogram_entry *entry = &histogram->top.items[i];
        TRY(keep_used(histogram, own, end - first, &entry->amounts));
        subtract_amounts(&histogram->rest, &entry->amounts);
    }
    return ERR_OK;
}

enum err histogram_build(const struct selection *selection,
                         enum histogram_of of,
                         bool by_bytes,
                         size_t top_count,
                         struct histogram *out)
{
    CLEANUP(u32_vec_release) struct u32_vec starts = {0};
    struct bucket_table table;
    TRY(table_of(selection, of, &starts, &table));
    CLEANUP(histogram_release) struct histogram histogram = {0};
    CLEANUP(ranked_group_vec_release) struct ranked_group_vec ranked = {0};
    struct bucket_amount total[REC_BUCKET_COUNT] = {0};
    TRY(row_groups_build(selection, ROW_GROUPS_BY_SITE_ALONE, &histogram.groups));
    TRY(rank_groups(&histogram.groups, table, by_bytes, selection->cancel, total, &ranked));
    ranked.len = min_u64(ranked.len, top_count);
    TRY(fill_histogram(&histogram, table, total, &ranked));
    TRY(add_sizes(selection, of, table, &histogram));
    *out = TAKE(histogram);
    return ERR_OK;
}

void histogram_release(struct histogram *histogram)
{
    row_groups_release(&histogram->groups);
    bucket_amount_vec_release(&histogram->total);
    bucket_amount_vec_release(&histogram->rest);
    sampled_sizes_vec_release(&histogram->sizes);
    for (size_t i = 0; i < histogram->top.len; i++) {
        bucket_amount_vec_release(&histogram->top.items[i].amounts);
    }
    histogram_entry_vec_release(&histogram->top);
}

static uint64_t count_all(struct bucket_table table)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < table.count; i++) {
        sum += table.buckets[i].count;
    }
    return sum;
}

// Distribute the blocks of one lifetime over the row's sizes in proportion. The rounding error of
// one size carries over to the next, so that no block is lost.
static void spread_lifetime(struct bucket_table sizes,
                            uint64_t size_sum,
                            const struct rec_bucket *lifetime,
                            bool is_certain,
                            struct heat_cell *cells)
{
    uint64_t sizes_before = 0;
    uint64_t given = 0;
    for (size_t i = 0; i < sizes.count; i++) {
        sizes_before += sizes.buckets[i].count;
        uint64_t due = share_u64(lifetime->count, sizes_before, size_sum);
        struct heat_cell *cell =
            &cells[sizes.buckets[i].bucket * (size_t)REC_BUCKET_COUNT + lifetime->bucket];
        *(is_certain ? &cell->certain : &cell->estimated) += due - given;
        given = due;
    }
}

static void
spread_row(struct bucket_table sizes, struct bucket_table lifetimes, struct heat_cell *cells)
{
    uint64_t size_sum = count_all(sizes);
    bool is_certain =
        sizes.count == 1 || (lifetimes.count == 1 && count_all(lifetimes) == size_sum);
    for (size_t i = 0; size_sum > 0 && i < lifetimes.count; i++) {
        spread_lifetime(sizes, size_sum, &lifetimes.buckets[i], is_certain, cells);
    }
}

struct costs heat_cell_costs(const struct heat_cell *cell)
{
    const struct rec_bucket blocks = {.bucket = cell->size,
                                      .count = cell->certain + cell->estimated};
    return (struct costs){.values = {[COST_ALLOCATIONS] = blocks.count},
                          .sizes = sampled_sizes_of_bucket(&blocks)};
}

enum err heat_map_build(const struct selection *selection, struct heat_cell_vec *out)
{
    CLEANUP(u32_vec_release) struct u32_vec size_starts = {0};
    CLEANUP(u32_vec_release) struct u32_vec lifetime_starts = {0};
    struct bucket_table sizes;
    struct bucket_table lifetimes;
    TRY(table_of(selection, HISTOGRAM_SIZES, &size_starts, &sizes));
    TRY(table_of(selection, HISTOGRAM_LIFETIMES, &lifetime_starts, &lifetimes));
    // All blocks of the row are distributed; those that do not pass are removed afterwards.
    sizes.range = lifetimes.range = (struct bucket_range){0, REC_BUCKET_COUNT};
    CLEANUP(heat_cell_vec_release) struct heat_cell_vec cells = {0};
    TRY(heat_cell_vec_resize(&cells, (size_t)REC_BUCKET_COUNT * REC_BUCKET_COUNT));
    for (size_t i = 0; i < selection->rows.len; i++) {
        TRY(cancel_step(selection->cancel));
        uint32_t row = selection->rows.items[i];
        spread_row(buckets_of_row(sizes, row), buckets_of_row(lifetimes, row), cells.items);
    }
    size_t kept = 0;
    for (size_t i = 0; i < cells.len; i++) {
        struct heat_cell cell = cells.items[i];
        cell.size = (uint32_t)(i / REC_BUCKET_COUNT);
        cell.lifetime = (uint32_t)(i % REC_BUCKET_COUNT);
        if (cell.certain + cell.estimated > 0 && bucket_range_has(selection->sizes, cell.size) &&
            bucket_range_has(selection->lifetimes, cell.lifetime)) {
            cells.items[kept++] = cell;
        }
    }
    cells.len = kept;
    *out = TAKE(cells);
    return ERR_OK;
}
