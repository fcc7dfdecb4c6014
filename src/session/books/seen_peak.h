// SPDX-License-Identifier: MIT
// seen_peak: the latest peak of the shared sum that the recorder has seen, and when, in one word,
// so that a thread reads both of one moment (target/producer/book/block_records.h).
//
//   number 32 | ms 32     a later time than 32 bits can say: none is later
//
// Context: T and H; pure.
#pragma once

#include <stdint.h>

static inline uint64_t seen_peak(uint32_t number, uint64_t ms)
{
    return (uint64_t)number << 32 | (ms < UINT32_MAX ? ms : UINT32_MAX);
}

static inline uint32_t seen_peak_number(uint64_t seen)
{
    return (uint32_t)(seen >> 32);
}

static inline uint64_t seen_peak_ms(uint64_t seen)
{
    const uint32_t ms = (uint32_t)seen;
    return ms < UINT32_MAX ? ms : UINT64_MAX;
}
