// SPDX-License-Identifier: MIT
#include "profile/select/bucket_range.h"

#include "base/compiler.h"
#include "base/minmax.h"

const uint32_t bucket_lifetime_unknown = 1U << COST_PEAK_BYTES | 1U << COST_PEAK_BLOCKS |
                                         1U << COST_OWN_PEAK_BYTES | 1U << COST_TEMPORARY |
                                         1U << COST_TEMPORARY_BYTES;

struct bucket_range bucket_range_covering(uint64_t low, uint64_t high)
{
    return (struct bucket_range){.first = rec_bucket_of(low), .end = rec_bucket_of(high) + 1};
}

uint64_t bucket_range_low(struct bucket_range range)
{
    return rec_bucket_low(range.first);
}

uint64_t bucket_range_high(struct bucket_range range)
{
    return range.end >= REC_BUCKET_COUNT ? UINT64_MAX : rec_bucket_low(range.end) - 1;
}

static struct bucket_share share_of(const struct rec_bucket *buckets,
                                    size_t bucket_count,
                                    uint32_t row,
                                    struct bucket_range range)
{
    struct bucket_share share = {0};
    FOR_ENTRIES_OF_ROW (bucket, buckets, bucket_count, row) {
        bool is_wanted = bucket_range_has(range, bucket->bucket);
        share.count += bucket->count;
        share.bytes += bucket->bytes;
        share.wanted_count += is_wanted ? bucket->count : 0;
        share.wanted_bytes += is_wanted ? bucket->bytes : 0;
    }
    return share;
}

// value * part / whole, rounded to the nearest. In a damaged file `part` may exceed `whole`.
static uint64_t scaled_bytes(uint64_t value, uint64_t part, uint64_t whole)
{
    if (whole == 0) {
        return 0;
    }
    part = min_u64(part, whole);
    return (uint64_t)(((unsigned __int128)value * part + whole / 2) / whole);
}

struct bucket_share
bucket_share_of_sizes(const struct recording *recording, uint32_t row, struct bucket_range range)
{
    return share_of(recording->size_buckets, recording->size_bucket_count, row, range);
}

bool bucket_share_is_all(const struct bucket_share *share)
{
    return share->wanted_count == share->count;
}

uint64_t bucket_share_blocks(const struct bucket_share *share, uint64_t blocks)
{
    return scaled_bytes(blocks, share->wanted_count, share->count);
}

uint64_t bucket_share_bytes(const struct bucket_share *share, uint64_t bytes)
{
    return scaled_bytes(bytes, share->wanted_bytes, share->bytes);
}

// Reduce one cost of the row to the wanted blocks.
static void cut_cost(struct bucket_cut *cut, enum cost cost, const struct bucket_share *share)
{
    bool is_bytes = cost_get_info(cost)->unit == COST_UNIT_BYTES;
    uint64_t part = is_bytes ? share->wanted_bytes : share->wanted_count;
    uint64_t whole = is_bytes ? share->bytes : share->count;
    uint64_t *value = &cut->costs.values[cost];
    if (part == whole) {
        return;
    }
    // A cost of no block, or the same for every block, is exact for the wanted ones.
    if (*value != 0 && *value != whole) {
        cut->estimated |= 1U << cost;
    }
    *value = scaled_bytes(*value, part, whole);
}

// Leaks are the blocks that were not freed.
static void compute_leaked(struct bucket_cut *cut)
{
    static const enum cost of[][3] = {
        {COST_LEAKED_BYTES, COST_ALLOCATED_BYTES, COST_FREED_BYTES},
        {COST_LEAKED_ALLOCATIONS, COST_ALLOCATIONS, COST_FREES},
    };
    uint64_t *values = cut->costs.values;
    for (size_t i = 0; i < ARRAY_LEN(of); i++) {
        values[of[i][0]] = excess_u64(values[of[i][1]], values[of[i][2]]);
        cut->estimated &= ~(1U << of[i][0]);
        cut->estimated |= (cut->estimated >> of[i][2] & 1) << of[i][0];
    }
}

void bucket_cut_sizes(const struct recording *recording,
                      uint32_t row,
                      struct bucket_range range,
                      struct bucket_cut *cut)
{
    struct bucket_share share = bucket_share_of_sizes(recording, row, range);
    if (bucket_share_is_all(&share) && share.count > 0) {
        return;
    }
    if (share.wanted_count == 0) {
        *cut = (struct bucket_cut){0};
        return;
    }
    for (int cost = 0; cost < COST_COUNT; cost++) {
        cut_cost(cut, (enum cost)cost, &share);
    }
    compute_leaked(cut);
}

void bucket_cut_lifetimes(const struct recording *recording,
                          uint32_t row,
                          struct bucket_range range,
                          struct bucket_cut *cut)
{
    struct bucket_share share =
        share_of(recording->lifetime_buckets, recording->lifetime_bucket_count, row, range);
    if (share.wanted_count == 0) {
        *cut = (struct bucket_cut){0};
        return;
    }
    cut_cost(cut, COST_FREES, &share);
    cut_cost(cut, COST_FREED_BYTES, &share);
    uint64_t *values = cut->costs.values;
    bool is_count_estimated = (cut->estimated >> COST_FREES & 1) != 0;
    bool is_bytes_estimated = (cut->estimated >> COST_FREED_BYTES & 1) != 0;
    *cut = (struct bucket_cut){
        .costs = {.values = {[COST_ALLOCATIONS] = values[COST_FREES],
                             [COST_ALLOCATED_BYTES] = values[COST_FREED_BYTES],
                             [COST_FREES] = values[COST_FREES],
                             [COST_FREED_BYTES] = values[COST_FREED_BYTES]}},
    };
    cut->estimated |= is_count_estimated ? 1U << COST_ALLOCATIONS | 1U << COST_FREES : 0;
    cut->estimated |= is_bytes_estimated ? 1U << COST_ALLOCATED_BYTES | 1U << COST_FREED_BYTES : 0;
}
