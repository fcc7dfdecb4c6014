// SPDX-License-Identifier: MIT
// histogram: the sizes or lifetimes of the selection's blocks, by call site.
//
// Buckets are those of the recording (rec_bucket_low). Invariant: in every bucket, the top call
// sites and `rest` add up to the total. A time range has no effect: buckets have no times. A range
// of sizes restricts only sizes, a range of lifetimes only lifetimes.
//
// The recording keeps the sizes and the lifetimes of each row, not their pairs. The heat map
// separates the certain part (rows with one size, or with one lifetime and no live block) from an
// estimate. The estimate assumes that sizes and lifetimes are independent within a row. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/model/cost.h"
#include "profile/time/row_groups.h"

enum histogram_of {
    HISTOGRAM_SIZES,     // of all allocations, in bytes
    HISTOGRAM_LIFETIMES, // of freed blocks, in milliseconds
};

struct bucket_amount {
    uint64_t count;
    uint64_t bytes;
};

DEFINE_VEC(bucket_amount_vec, struct bucket_amount);

struct histogram_entry {
    uint32_t group;                   // in histogram.groups
    struct bucket_amount_vec amounts; // owned; by bucket - first_bucket
};

DEFINE_VEC(histogram_entry_vec, struct histogram_entry);

struct histogram {
    struct row_groups groups;       // owned; by call site
    uint32_t first_bucket;          // the first used bucket; total.len buckets follow
    struct bucket_amount_vec total; // owned; empty if nothing was selected
    struct histogram_entry_vec top; // owned; highest first
    struct bucket_amount_vec rest;  // owned
    struct sampled_sizes_vec sizes; // owned; of the blocks in total, all 0 if they are exact
};

// Build the histogram; call sites are ranked by bytes if `by_bytes`, else by count.
enum err histogram_build(const struct selection *selection,
                         enum histogram_of of,
                         bool by_bytes,
                         size_t top_count,
                         struct histogram *out) MUST_USE;
void histogram_release(struct histogram *histogram);

// Return the blocks of a bucket as allocations and their bytes, for sampling_errors(). `index` is
// below total.len.
struct costs histogram_costs(const struct histogram *histogram, size_t index);

struct heat_cell {
    uint32_t size; // buckets
    uint32_t lifetime;
    uint64_t certain;
    uint64_t estimated;
};

DEFINE_VEC(heat_cell_vec, struct heat_cell);

// Return all blocks of a cell as allocations, for sampling_errors().
struct costs heat_cell_costs(const struct heat_cell *cell);

// List the non-empty cells of freed blocks, by size, then lifetime.
enum err heat_map_build(const struct selection *selection, struct heat_cell_vec *out) MUST_USE;
