// SPDX-License-Identifier: MIT
// block_entries: the live blocks of a process that have no word by address (block_words.h): their
// region could not be mapped, or another block's word is in their place (handles of cairn.h).
//
// An entry names its block. It is in one of two buckets of a chunk, which follow from the address.
// Chunks are filled one after the other, and each is twice as large as the one before.
//
//   chunk 0   1,024 buckets   chunk 1   2,048 buckets     ...     all in one region of the file
//   a bucket = 8 entries      an entry = address | row 24, birth 40 | size
//
// An entry with address 0 is free. The thread that stores its address by compare and swap has it;
// then it stores size and word. A block ends by storing 0 in the word, and then in the address.
//
// The process P writes, the recorder lists (recorder/session/block_words_list.h). Trust: R treats
// everything as hostile. Context: T and H; no code but packing.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "session/books/block_words.h"

#define ENTRY_BUCKET     8u
#define ENTRY_CHUNKS     8u
#define ENTRY_FIRST_BITS 10u // of the number of buckets of chunk 0

#define ENTRY_BIRTH_BITS 40u
#define ENTRY_BIRTH_MAX  (((uint64_t)1 << ENTRY_BIRTH_BITS) - 1) // ms: 34 years

struct block_entry {
    _Atomic uint64_t address; // 0: free
    _Atomic uint64_t word;    // 0: no block (yet)
    _Atomic uint64_t size_bytes;
};

struct entry_bucket {
    struct block_entry entries[ENTRY_BUCKET];
};

#define ENTRY_BUCKETS_ALL (((1u << ENTRY_CHUNKS) - 1) << ENTRY_FIRST_BITS)
#define ENTRY_BYTES_ALL   (ENTRY_BUCKETS_ALL * sizeof(struct entry_bucket))
_Static_assert(ENTRY_BYTES_ALL <= sizeof(struct words_region), "all chunks are in one region");
_Static_assert((sizeof(struct entry_bucket) << ENTRY_FIRST_BITS) % PAGE_LARGEST == 0,
               "whole pages");

// The place of the region that has the chunks (words_region_note).
#define ENTRY_PLACE WORDS_PLACES

static inline uint32_t entry_chunk_buckets(uint32_t chunk)
{
    return 1u << (ENTRY_FIRST_BITS + chunk);
}

static inline uint64_t entry_chunk_bytes(uint32_t chunk)
{
    return entry_chunk_buckets(chunk) * sizeof(struct entry_bucket);
}

// Return where a chunk begins in its region.
static inline uint64_t entry_chunk_offset(uint32_t chunk)
{
    return (entry_chunk_buckets(chunk) - entry_chunk_buckets(0)) * sizeof(struct entry_bucket);
}

// Return the two buckets of an address in a chunk.
static inline uint32_t entry_first_bucket(uint64_t address, uint32_t chunk)
{
    return (uint32_t)(address * 0x9e3779b97f4a7c15u >> (64 - ENTRY_FIRST_BITS - chunk));
}

static inline uint32_t entry_second_bucket(uint64_t address, uint32_t chunk)
{
    return (uint32_t)(address * 0xd6e8feb86659fd93u >> (64 - ENTRY_FIRST_BITS - chunk));
}

static inline uint64_t entry_word(const struct word_block *block)
{
    const uint64_t birth = block->birth_ms < ENTRY_BIRTH_MAX ? block->birth_ms : ENTRY_BIRTH_MAX;
    return (uint64_t)block->row << WORD_ROW_AT | birth;
}

static inline struct word_block entry_block(uint64_t address, uint64_t word, uint64_t size_bytes)
{
    return (struct word_block){.address = address,
                               .size_bytes = size_bytes,
                               .birth_ms = word & ENTRY_BIRTH_MAX,
                               .row = word_row(word)};
}
_Static_assert(ENTRY_BIRTH_BITS == WORD_ROW_AT, "word_row() is of both");
