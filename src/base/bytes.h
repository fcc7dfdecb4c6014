// SPDX-License-Identifier: MIT
// bytes: a borrowed range of memory, and unaligned little-endian access to it.
//
// A `struct bytes` never owns. Only the get_/put_ functions turn files and shared memory into
// numbers, so no code assumes alignment or byte order. Context: T and H.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct bytes {
    const uint8_t *data;
    size_t len;
};

static inline uint16_t get_u16(const uint8_t *at)
{
    return (uint16_t)(at[0] | (at[1] << 8));
}

static inline uint32_t get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | ((uint32_t)at[1] << 8) | ((uint32_t)at[2] << 16) |
           ((uint32_t)at[3] << 24);
}

static inline uint64_t get_u64(const uint8_t *at)
{
    return (uint64_t)get_u32(at) | ((uint64_t)get_u32(at + 4) << 32);
}

static inline void put_u16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static inline void put_u32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    at[2] = (uint8_t)(value >> 16);
    at[3] = (uint8_t)(value >> 24);
}

static inline void put_u64(uint8_t *at, uint64_t value)
{
    put_u32(at, (uint32_t)value);
    put_u32(at + 4, (uint32_t)(value >> 32));
}
