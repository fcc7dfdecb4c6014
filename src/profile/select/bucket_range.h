// SPDX-License-Identifier: MIT
// bucket_range: which blocks of each row have a wanted size or lifetime, and their costs.
//
// A recording keeps the sizes and lifetimes of each row's blocks in logarithmic buckets
// (rec_bucket_of). A range therefore covers whole buckets, rounded outwards. The costs of a row:
//
//   sizes       allocations and their bytes are exact. A row is exact if all its blocks are wanted,
//               or none. A cost that all blocks of a row share is exact. All else is an
//               *estimate*: the row's cost times the wanted share of its blocks.
//   lifetimes   only freed blocks have a lifetime, so blocks live at the end never pass.
//               Allocations and frees are exact; temporary and peak costs are *unknown* and 0.
//
// With a time range, or with both bucket ranges, the shares apply to what the other restriction
// left, and every reduced cost is an estimate. Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "profile/model/cost.h"
#include "recording/format/tables.h"

// Buckets first .. end - 1.
struct bucket_range {
    uint32_t first;
    uint32_t end;
};

static inline bool bucket_range_has(struct bucket_range range, uint32_t bucket)
{
    return bucket >= range.first && bucket < range.end;
}

// The smallest range that covers the values `low` to `high`, both included. low <= high.
struct bucket_range bucket_range_covering(uint64_t low, uint64_t high);

// The lowest and the highest value in the range.
uint64_t bucket_range_low(struct bucket_range range);
uint64_t bucket_range_high(struct bucket_range range);

// The wanted part of a row's costs.
struct bucket_cut {
    struct costs costs;
    uint32_t estimated; // bit n: enum cost n is an estimate
};

// Reduce `cut`, which holds the row's costs, to the blocks of wanted sizes or lifetimes. `row` is
// an index in the recording.
void bucket_cut_sizes(const struct recording *recording,
                      uint32_t row,
                      struct bucket_range range,
                      struct bucket_cut *cut);
void bucket_cut_lifetimes(const struct recording *recording,
                          uint32_t row,
                          struct bucket_range range,
                          struct bucket_cut *cut);

// The number of blocks of a row, in total and of wanted sizes.
struct bucket_share {
    uint64_t wanted_count;
    uint64_t wanted_bytes;
    uint64_t count;
    uint64_t bytes;
};

struct bucket_share
bucket_share_of_sizes(const struct recording *recording, uint32_t row, struct bucket_range range);

// Whether all blocks of the row are wanted. True for a row without known sizes.
bool bucket_share_is_all(const struct bucket_share *share);

// The wanted part of `blocks` or `bytes` of the row, rounded to the nearest.
uint64_t bucket_share_blocks(const struct bucket_share *share, uint64_t blocks);
uint64_t bucket_share_bytes(const struct bucket_share *share, uint64_t bytes);

// Costs that are unknown, and 0, under a range of lifetimes: bit n for enum cost n.
extern const uint32_t bucket_lifetime_unknown;
