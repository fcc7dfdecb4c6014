// SPDX-License-Identifier: MIT
// bucket_range: which blocks of each row have a wanted size, or lived for a wanted time.
//
// A recording keeps the sizes and lifetimes of each row's blocks in logarithmic buckets
// (rec_bucket_of), so a range is one of whole buckets, rounded outwards. What a row then costs:
//
//   sizes       allocations and their bytes are exact. The rest is exact for rows of which all or
//               none of the blocks are wanted, and a cost that all blocks of a row share is exact,
//               too. Else it is an *estimate*: the row's cost times the wanted share of its blocks.
//   lifetimes   only freed blocks have one, so what is alive at the end never passes. Allocations
//               and frees are exact; what was temporary or live at the peak is *unknown* and 0.
//
// Under a time range, or under both, the shares are taken of what the other restriction left, and
// all that was cut is an estimate. Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
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

// The lowest and the highest value that the range holds.
uint64_t bucket_range_low(struct bucket_range range);
uint64_t bucket_range_high(struct bucket_range range);

// What of a row's costs is wanted.
struct bucket_cut {
    struct costs costs;
    uint32_t estimated; // bit n: enum cost n is an estimate
};

// Cuts `cut`, which holds the row's costs, down to the blocks of wanted sizes or lifetimes. `row`
// is an index in the recording.
void bucket_cut_sizes(const struct recording *recording,
                      uint32_t row,
                      struct bucket_range range,
                      struct bucket_cut *cut);
void bucket_cut_lifetimes(const struct recording *recording,
                          uint32_t row,
                          struct bucket_range range,
                          struct bucket_cut *cut);

// How many blocks a row has, in all and of wanted sizes.
struct bucket_share {
    uint64_t wanted_count;
    uint64_t wanted_bytes;
    uint64_t count;
    uint64_t bytes;
};

struct bucket_share
bucket_share_of_sizes(const struct recording *recording, uint32_t row, struct bucket_range range);

// Whether nothing of the row is unwanted; so it is where no sizes are known.
bool bucket_share_is_all(const struct bucket_share *share);

// What of `blocks` or of `bytes` of the row falls to the wanted, to the nearest.
uint64_t bucket_share_blocks(const struct bucket_share *share, uint64_t blocks);
uint64_t bucket_share_bytes(const struct bucket_share *share, uint64_t bytes);

// Costs that are not known, and 0, under a range of lifetimes: bits as above.
extern const uint32_t bucket_lifetime_unknown;
