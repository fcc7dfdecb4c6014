// SPDX-License-Identifier: MIT
// block_extent: the heap memory that a block of glibc's malloc takes, its header included, as
// malloc.c rounds it. For other allocators it is an estimate.
//
// Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/minmax.h"
#include "host/containers/address_range.h"
#include "host/memory/page_size.h"

enum {
    BLOCK_CHUNK_HEAD = 8, // before the block, and not shared with the chunk before
    BLOCK_CHUNK_ALIGN = 16,
    BLOCK_CHUNK_MIN = 32,
    BLOCK_MAPPED_HEAD = 16,       // of a block that has a mapping of its own
    BLOCK_MAPPED_MIN = 128 << 10, // its default minimum size
};

// Whether a block may have a mapping of its own.
static inline bool block_is_apart(uint64_t address, uint64_t size_bytes)
{
    return page_rest(address) == BLOCK_MAPPED_HEAD && size_bytes >= BLOCK_MAPPED_MIN;
}

// Return the size of the chunk of a block that has no mapping of its own.
static inline uint64_t block_chunk_bytes(uint64_t size_bytes)
{
    const uint64_t bytes = size_bytes + BLOCK_CHUNK_HEAD + BLOCK_CHUNK_ALIGN - 1;
    return max_u64(bytes - bytes % BLOCK_CHUNK_ALIGN, BLOCK_CHUNK_MIN);
}

static inline struct address_range block_extent_of(uint64_t address, uint64_t size_bytes)
{
    if (block_is_apart(address, size_bytes)) {
        return (struct address_range){.start = address - BLOCK_MAPPED_HEAD,
                                      .end = page_end(address + size_bytes)};
    }
    const uint64_t start = address - BLOCK_CHUNK_HEAD;
    return (struct address_range){.start = start, .end = start + block_chunk_bytes(size_bytes)};
}
