// SPDX-License-Identifier: MIT
// block_words: the live blocks of a process, one word for each, in memory that is indexed by the
// block's address.
//
//   address of a block = | custom 1 | region 21 bits | place in the region 26 bits (64 MiB) |
//
//   a region has these tables, each with one word for a grain of addresses:
//     coarse   4,096 bytes   blocks of 4,096 bytes and more
//     large    4,096 bytes   the sizes of those
//     middle     256 bytes   blocks of 256 to 4,095 bytes
//     fine        32 bytes   smaller blocks; or WORD_MARKER: the grain's blocks are in `tiny`
//     tiny         8 bytes   blocks that may be closer to each other than 32 bytes
//   and for each 4,096 bytes a note which of the tables have had words there
//
//   a word of    coarse        | row 24 | birth 31          | start in the grain / 8, 9 |
//                middle        | row 24 | birth 23 | size 12 | start in the grain / 8, 5 |
//                fine, tiny    | row 24 | birth 30 | size  8 | start in the grain / 8, 2 |
//
// A block's word is in the table of its size, at the grain in which the block starts. Two live
// blocks of one table never start in the same grain, because a block of the middle table is as long
// as a grain, and so is one of the coarse table; those of the fine table are at least 32 bytes
// apart with glibc. For other allocators, writers choose a size below which blocks go to `tiny`
// (target/producer/words). A word also says where in the grain its block starts, so that nothing
// but a free of that address finds it.
//
// A process writes its words itself, with plain stores; see target/producer/words for the rules.
// The recorder lists them (recorder/session/block_words_list.h). They outlive the process.
//
// The file: one header, then one region after the other, as processes need them. It is sparse, so
// only touched pages take memory. Trust: R treats everything as hostile. Context: T and H; no code
// but packing.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address_bits_arch.h"
#include "base/page.h"
#include "session/books/custom_block.h"
#include "session/books/words_share.h"

// A birth is the time of the block's allocation in ms, as a number of `bits` bits that never wraps:
//
//   times below 2 << e       the time itself                                  e = bits - 5
//   each doubling after      1 << e numbers: the time without its last bit, its last two, ...
//
// So a lifetime is exact to the ms for the first four minutes, and later to a 2^17th of the time
// since the session began (of small blocks to a 2^24th). Later times have larger or equal numbers.
#define BIRTH_EXPONENT_BITS    5
#define WORD_BIRTH_BITS_MIDDLE 23
#define BIRTH_EXACT_MS         ((uint64_t)2 << (WORD_BIRTH_BITS_MIDDLE - BIRTH_EXPONENT_BITS))

static inline uint64_t birth_code(uint64_t time_ms, uint32_t bits)
{
    const uint32_t steps_bits = bits - BIRTH_EXPONENT_BITS;
    if (time_ms >> steps_bits <= 1) {
        return time_ms;
    }
    const uint32_t shift = 63 - steps_bits - (uint32_t)__builtin_clzll(time_ms);
    const uint64_t last = ((uint64_t)1 << bits) - 1;
    return shift < (1u << BIRTH_EXPONENT_BITS) - 1
               ? ((uint64_t)shift << steps_bits) + (time_ms >> shift)
               : last;
}

// Return the first time that has this code.
static inline uint64_t birth_time_ms(uint64_t code, uint32_t bits)
{
    const uint32_t steps_bits = bits - BIRTH_EXPONENT_BITS;
    const uint64_t steps = (uint64_t)1 << steps_bits;
    return code >> steps_bits <= 1 ? code
                                   : (steps | (code & (steps - 1))) << ((code >> steps_bits) - 1);
}

#define WORDS_MAGIC          0x7364726f77ULL // "words", little endian
#define WORDS_REGION_BITS    26
#define WORDS_REGION_BYTES   ((uint64_t)1 << WORDS_REGION_BITS) // of address
#define WORDS_ADDRESS_BITS   ADDRESS_BITS_ARCH
#define WORDS_DIRECTORY_BITS (WORDS_ADDRESS_BITS - WORDS_REGION_BITS)
#define WORDS_CUSTOM_REGIONS (1u << WORDS_DIRECTORY_BITS) // blocks with WIRE_CUSTOM_BLOCK follow
#define WORDS_PLACES         (2 * WORDS_CUSTOM_REGIONS)
#define WORDS_REGIONS_MAX    16384u // of all processes of a session: 1 TiB of addresses
#define WORDS_GROUP          32u    // regions that a process claims at once
#define WORDS_PROCESSES      1024u  // slots of a session
#define WORDS_GROUPS         (WORDS_REGIONS_MAX / WORDS_GROUP)

#define WORDS_COARSE_BITS 12
#define WORDS_MIDDLE_BITS 8
#define WORDS_FINE_BITS   5
#define WORDS_TINY_BITS   3

#define WORD_ROW_BITS 24
#define WORD_ROW_AT   (64 - WORD_ROW_BITS)
#define WORD_ROW_MAX  ((1u << WORD_ROW_BITS) - 1) // rows begin at 1, so no word of a block is 0
// Rows have their numbers in ranges, each of one level of sampling (sampling_level.h): so a word
// says by its row how its block was chosen.
#define WORD_RANGE_ROWS (1u << 13)
#define WORD_RANGES     ((WORD_ROW_MAX + 1) / WORD_RANGE_ROWS)
#define WORD_MARKER     ((uint64_t)1) // of `fine`; its row is 0

// The bits of a word below its row, by the grain of its table.
#define WORD_START_BITS_OF(grain_bits) ((grain_bits) < WORDS_FINE_BITS ? 2 : (grain_bits)-3)
#define WORD_SIZE_BITS_OF(grain_bits) \
    ((grain_bits) == WORDS_COARSE_BITS ? 0 : (grain_bits) == WORDS_MIDDLE_BITS ? 12 : 8)
#define WORD_BIRTH_AT(grain_bits)   (WORD_START_BITS_OF(grain_bits) + WORD_SIZE_BITS_OF(grain_bits))
#define WORD_BIRTH_BITS(grain_bits) (WORD_ROW_AT - WORD_BIRTH_AT(grain_bits))
_Static_assert(WORD_BIRTH_BITS(WORDS_MIDDLE_BITS) == WORD_BIRTH_BITS_MIDDLE, "the fewest");

// Sizes from which a block has a word for 32 bytes to itself, by what the allocator does.
enum words_tiny_below {
    WORDS_TINY_NEVER = 0,   // glibc: 32 bytes and more from start to start
    WORDS_TINY_USUAL = 17,  // jemalloc, mimalloc, tcmalloc: requests of 16 bytes may be 8 apart
    WORDS_TINY_SMALL = 256, // any: small and larger blocks may share 32 bytes, as in musl
};

// What is noted of a table for 4,096 bytes of address. P sets it once, and it stays. Only a table
// that has had words there needs a look: another one would cost a cache line, memory where there
// was a hole, and a fault where the process has given it back.
enum words_note {
    WORDS_NOTE_NONE, // it has had no word there
    WORDS_NOTE_HAD,
    WORDS_NOTE_GONE, // it had none when the process limited its addresses, and will have none
};

struct words_page {
    _Atomic uint8_t has_coarse; // enum words_note
    _Atomic uint8_t has_middle; // likewise
    _Atomic uint8_t has_fine;   // or tiny; likewise
    _Atomic uint8_t lacks_tiny; // 1: no further word goes to the tiny table
};

struct words_region {
    struct words_page pages[WORDS_REGION_BYTES >> WORDS_COARSE_BITS];
    _Atomic uint64_t coarse[WORDS_REGION_BYTES >> WORDS_COARSE_BITS];
    _Atomic uint64_t large[WORDS_REGION_BYTES >> WORDS_COARSE_BITS]; // bytes
    _Atomic uint64_t middle[WORDS_REGION_BYTES >> WORDS_MIDDLE_BITS];
    _Atomic uint64_t fine[WORDS_REGION_BYTES >> WORDS_FINE_BITS];
    _Atomic uint64_t tiny[WORDS_REGION_BYTES >> WORDS_TINY_BITS];
};

struct words_file {
    uint64_t magic; // R, before any process writes
    // A set bit marks a group of regions in use. P sets by compare and swap, R clears when the
    // process has ended and the words are zero.
    _Alignas(64) _Atomic uint64_t groups[WORDS_GROUPS / 64];
    // P, after the bit: the number of the process that has the group.
    _Alignas(64) _Atomic uint32_t owners[WORDS_GROUPS];
    struct words_share shares[WORDS_PROCESSES]; // by slot
    // R: 1: numbers of rows were given back to the process whose entries are in that group
    // (free_rows.h).
    _Atomic uint8_t gives_rows[WORDS_GROUPS];
    // P, release when the region can be used: words_region_note(); 0: not used (yet).
    _Alignas(64) _Atomic uint64_t regions[WORDS_REGIONS_MAX];
};

#define WORDS_HEADER_BYTES ((uint64_t)256 << 10)
#define WORDS_FILE_BYTES \
    (WORDS_HEADER_BYTES + (uint64_t)WORDS_REGIONS_MAX * sizeof(struct words_region))
_Static_assert(sizeof(struct words_file) <= WORDS_HEADER_BYTES, "the header has its room");
_Static_assert(WORDS_HEADER_BYTES % PAGE_LARGEST == 0 &&
                   sizeof(struct words_region) % PAGE_LARGEST == 0 &&
                   offsetof(struct words_region, tiny) % PAGE_LARGEST == 0,
               "whole pages, which are mapped and given back alone");

// A block as a word describes it.
struct word_block {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t birth_ms; // in a word exact to birth_code()
    uint32_t row;      // 1 to WORD_ROW_MAX
};

// Return whether blocks at this address can have a word.
static inline bool words_have_place(uint64_t address)
{
    return (address & ~WIRE_CUSTOM_BLOCK) >> WORDS_ADDRESS_BITS == 0 && address % 8 == 0;
}

// Return the region's index in a directory of WORDS_PLACES. The address has a place.
static inline uint32_t words_place(uint64_t address)
{
    const uint32_t custom = (address & WIRE_CUSTOM_BLOCK) != 0 ? WORDS_CUSTOM_REGIONS : 0;
    return (uint32_t)(address >> WORDS_REGION_BITS) % WORDS_CUSTOM_REGIONS + custom;
}

// Return the first address of the region that has this index.
static inline uint64_t words_place_address(uint32_t place)
{
    const uint64_t custom = place >= WORDS_CUSTOM_REGIONS ? WIRE_CUSTOM_BLOCK : 0;
    return (uint64_t)(place % WORDS_CUSTOM_REGIONS) << WORDS_REGION_BITS | custom;
}

// Return the number that a process has in the words: never 0, which stands for no process.
static inline uint32_t words_process_number(uint64_t join_number)
{
    return (uint32_t)join_number + 1;
}

// What words_file.regions says of a region.
static inline uint64_t words_region_note(uint32_t process, uint32_t place)
{
    return (uint64_t)process << 32 | (place + 1);
}

static inline uint64_t words_region_offset(uint32_t number)
{
    return WORDS_HEADER_BYTES + (uint64_t)number * sizeof(struct words_region);
}

// Return the word of a block in a table of that grain. Its size fits, or is in `large`.
static inline uint64_t block_word(const struct word_block *block, uint32_t grain_bits)
{
    const uint64_t start = block->address % ((uint64_t)1 << grain_bits) / 8;
    const uint64_t size = grain_bits == WORDS_COARSE_BITS ? 0 : block->size_bytes;
    return (uint64_t)block->row << WORD_ROW_AT |
           birth_code(block->birth_ms, WORD_BIRTH_BITS(grain_bits)) << WORD_BIRTH_AT(grain_bits) |
           size << WORD_START_BITS_OF(grain_bits) | start;
}

static inline uint32_t word_row(uint64_t word)
{
    return (uint32_t)(word >> WORD_ROW_AT);
}

static inline uint64_t word_birth_code(uint64_t word, uint32_t grain_bits)
{
    return word >> WORD_BIRTH_AT(grain_bits) & (((uint64_t)1 << WORD_BIRTH_BITS(grain_bits)) - 1);
}

static inline uint64_t word_birth_ms(uint64_t word, uint32_t grain_bits)
{
    return birth_time_ms(word_birth_code(word, grain_bits), WORD_BIRTH_BITS(grain_bits));
}

// Return the size of the block of a word; 0 in the coarse table.
static inline uint64_t word_size(uint64_t word, uint32_t grain_bits)
{
    return word >> WORD_START_BITS_OF(grain_bits) &
           (((uint64_t)1 << WORD_SIZE_BITS_OF(grain_bits)) - 1);
}

// Return where in its grain the word's block starts, in bytes.
static inline uint64_t word_start(uint64_t word, uint32_t grain_bits)
{
    return (word & (((uint64_t)1 << WORD_START_BITS_OF(grain_bits)) - 1)) * 8;
}

// Return whether the word is of the block that starts at exactly `address`. The word's table has a
// grain of `grain_bits`.
static inline bool word_is_at(uint64_t word, uint64_t address, uint32_t grain_bits)
{
    return word_row(word) != 0 &&
           word_start(word, grain_bits) == address % ((uint64_t)1 << grain_bits);
}

// Return the bits of the birth in the word of a block of that size.
static inline uint32_t block_birth_bits(uint64_t size_bytes)
{
    return size_bytes < (1u << WORDS_MIDDLE_BITS)   ? WORD_BIRTH_BITS(WORDS_FINE_BITS)
           : size_bytes < (1u << WORDS_COARSE_BITS) ? WORD_BIRTH_BITS(WORDS_MIDDLE_BITS)
                                                    : WORD_BIRTH_BITS(WORDS_COARSE_BITS);
}

// Return the birth of a block of that size as its word states it.
static inline uint64_t block_birth_stated(uint64_t birth_ms, uint64_t size_bytes)
{
    const uint32_t bits = block_birth_bits(size_bytes);
    return birth_time_ms(birth_code(birth_ms, bits), bits);
}

// Return by how much a block with this stated birth may be younger.
static inline uint64_t block_birth_error_ms(uint64_t stated_ms, uint64_t size_bytes)
{
    const uint32_t bits = block_birth_bits(size_bytes);
    return birth_time_ms(birth_code(stated_ms, bits) + 1, bits) - stated_ms - 1;
}
