// SPDX-License-Identifier: MIT
#include "target/producer/byte_sampler.h"

#include "base/hash.h"

enum {
    FRACTION_BITS = 32,
};
#define LN_2 0xb17217f8u // ln 2 * 2^32

// Return log2(mantissa / 2^63) * 2^32 of a number from 2^63 on: each squaring gives one more bit.
static uint64_t log2_of_mantissa(uint64_t mantissa)
{
    uint64_t log = 0;
    for (int i = 0; i < FRACTION_BITS; i++) {
        const unsigned __int128 square = (unsigned __int128)mantissa * mantissa; // from 2^126 on
        const uint32_t bit = (uint32_t)(square >> 127);
        mantissa = (uint64_t)(square >> (63 + bit));
        log = log << 1 | bit;
    }
    return log;
}

uint64_t byte_sampler_exponential(uint64_t random, uint64_t mean)
{
    const uint64_t number = random | (random == 0);
    const uint32_t zeros = (uint32_t)__builtin_clzll(number);
    const uint64_t log = log2_of_mantissa(number << zeros);
    const uint64_t bits = ((uint64_t)(zeros + 1) << FRACTION_BITS) - log; // -log2(number / 2^64)
    const uint64_t natural = (uint64_t)((unsigned __int128)bits * LN_2 >> FRACTION_BITS);
    return (uint64_t)((unsigned __int128)natural * mean >> FRACTION_BITS);
}

static uint64_t mean_of(uint64_t interval_bytes)
{
    return interval_bytes * 9 / 16;
}

static uint64_t next_random(struct byte_sampler *s)
{
    s->random += 0x9e3779b97f4a7c15ULL; // SplitMix64
    return hash_mix(s->random);
}

void byte_sampler_draw(struct byte_sampler *s, const struct lane_header *lane)
{
    s->next = atomic_load_explicit(&lane->unsampled_bytes, memory_order_relaxed) +
              atomic_load_explicit(&lane->unsampled_allocations, memory_order_relaxed) +
              byte_sampler_exponential(next_random(s), mean_of(s->interval_bytes));
}

void byte_sampler_set_interval(struct byte_sampler *s,
                               const struct lane_header *lane,
                               uint64_t interval_bytes)
{
    if (interval_bytes != s->interval_bytes) {
        s->interval_bytes = interval_bytes;
        byte_sampler_draw(s, lane);
    }
}

void byte_sampler_init(struct byte_sampler *s,
                       const struct lane_header *lane,
                       uint64_t interval_bytes,
                       uint64_t seed)
{
    *s = (struct byte_sampler){.random = hash_mix(seed), .interval_bytes = interval_bytes};
    byte_sampler_draw(s, lane);
}

// Return (1 - exp(-y)) / y * 2^31, for y = length / mean below 2: 1 - y/2 * (1 - y/3 * (1 - ...)).
static uint64_t share_of_moments(uint64_t length, uint64_t mean)
{
    enum {
        TERMS = 20,
        ONE_BITS = 31
    };
    const uint64_t one = (uint64_t)1 << ONE_BITS;
    const uint64_t y = (length << ONE_BITS) / mean;
    uint64_t sum = one;
    for (uint64_t k = TERMS; k >= 2; k--) {
        sum = one - (y * sum >> ONE_BITS) / k;
    }
    return sum;
}

// (1 / w) / (1 - exp(-y)) = mean / (w * length * (1 - exp(-y)) / y), in 31 bits.
bool byte_sampler_keeps(uint64_t random, uint64_t interval_bytes, uint64_t size_bytes)
{
    const uint64_t length = size_bytes + 1;
    const uint64_t mean = mean_of(interval_bytes);
    const uint64_t share = share_of_moments(length, mean);
    const uint64_t of_one = (random >> 32) * share >> 32; // 31 bits
    return of_one * length * block_weight(size_bytes, interval_bytes) < mean << 31;
}

bool byte_sampler_chooses(struct byte_sampler *s, struct lane_header *lane, uint64_t size_bytes)
{
    if (size_bytes >= block_weight_length(s->interval_bytes)) {
        return true;
    }
    const bool has_moment = size_bytes >= byte_sampler_budget(s, lane);
    const bool is_chosen =
        has_moment && byte_sampler_keeps(next_random(s), s->interval_bytes, size_bytes);
    if (!is_chosen) {
        byte_sampler_count(lane, size_bytes);
    }
    if (has_moment) {
        byte_sampler_draw(s, lane);
    }
    return is_chosen;
}
