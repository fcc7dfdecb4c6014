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

void byte_sampler_draw(struct byte_sampler *s, const struct lane_header *lane)
{
    s->random += 0x9e3779b97f4a7c15ULL; // SplitMix64
    s->next = atomic_load_explicit(&lane->unsampled_bytes, memory_order_relaxed) +
              atomic_load_explicit(&lane->unsampled_allocations, memory_order_relaxed) +
              byte_sampler_exponential(hash_mix(s->random), s->mean_bytes);
}

void byte_sampler_set_mean(struct byte_sampler *s,
                           const struct lane_header *lane,
                           uint64_t mean_bytes)
{
    if (mean_bytes != s->mean_bytes) {
        s->mean_bytes = mean_bytes;
        byte_sampler_draw(s, lane);
    }
}

void byte_sampler_init(struct byte_sampler *s,
                       const struct lane_header *lane,
                       uint64_t mean_bytes,
                       uint64_t seed)
{
    *s = (struct byte_sampler){.random = hash_mix(seed), .mean_bytes = mean_bytes};
    byte_sampler_draw(s, lane);
}
