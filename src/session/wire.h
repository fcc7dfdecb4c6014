// SPDX-License-Identifier: MIT
// wire: the records that travel in a lane.
//
// A record is one or more 64-bit words and never wraps around the end of the ring (WIRE_PAD fills
// the rest). Byte 0 of the first word is its tag. Addresses have 56 bits (the user half under
// five-level paging) and fill the other seven bytes of word 0.
//
//   tag            word 0                     words that follow
//   PAD            words (56)                 that many words, itself included, mean nothing
//   TICK           ms since start (56)        -
//   FREE*          address (56)               -
//   ALLOC          address (56)               slot 24 high | size 40 low
//   REALLOC*       new address (56)           slot 24 | size 40;  old address
//   ALLOC_LARGE    address (56)               slot (24 high) ; size 64             size >= 2^40
//   REALLOC_LARGE* new address (56)           slot (24 high) ; old address ; size 64
//   PAIR*          slot 24, size 32           -
//   PAIRS*         slot 24                    bytes 40 high | count 24
//   STAMP          stamp (56)                 -
//   HIGH_WATER         count 8                    count times: slot 24 | size 40
//   ALLOC_SAMPLED  address (56)               slot 24 | size 40 ; shift
//   ALLOC_LATE     address (56)               slot 24 | size 40 ; stamp
//   STACK          count 8, flags 8, slot 24  base name ; count frames, from base towards the leaf
//   MODULE         slot 16, id bytes 8,       bias ; start ; end ; build-id, then path, each padded
//                  path bytes 16, flags 8     with zeros to whole words
//   TEXT           kind 8, flags 8, bytes 16  the bytes, padded with zeros to whole words
//   MAPPING        address (56)               slot 24 | kind 40 ; size ; number ; old address ;
//                                             old size ; old number
//   EVENT          slot 24                    weight
//   QUESTION       number 32, what 8, scope 8 -
//   LEFT_OUT       bytes 48, grain 8          bytes 40 high | count 24
//
// Fields of word 0 after the tag are packed from bit 8 upwards in the order given.
//
// Stacks. A lane has a dictionary: slot -> stack, that both sides hold. ALLOC names a stack by its
// slot. STACK says that `slot` now means the stack that is reached from the node named `base` (0 is
// the root: the thread's entry side) by `count` more frames; its nodes' names follow by
// stack_name(parent's name, frame's pc). Without STACK_HAS_SLOT it only introduces nodes, which is
// how stacks of more than WIRE_STACK_FRAMES_MAX frames are sent. The base was introduced on the
// same lane before, since the last MODULE with WIRE_MODULE_RESET. A frame is module slot 12 high |
// offset 52 low. pc = bias + offset of the module that MODULE last gave this slot on this lane;
// slot 0 is no module, its offset is the pc itself. Frames are return addresses (look them up at pc
// - 1) but for those marked in the flags. The pseudo frame WIRE_FRAME_CUT stands where the middle
// of a deep stack was left out; its pc for naming is WIRE_FRAME_CUT itself.
//
// Mappings. MAPPING says that [old address, + old size) was unmapped, and then [address, + size)
// mapped by the stack in `slot`; a size of 0 says that it was not. The program's own calls only.
// Numbers count the changes of a process: of two to one address the later has the higher number, in
// whatever order their records are read. Ranges are bytes; the kernel rounds both ends up to pages.
//
// Events. EVENT says that something of that weight happened, which is no allocation; the leaf of
// its stack names it. QUESTION asks for the sums of all that was recorded before it, answered in
// the lane's header (stats_query.h); what: enum stats_query_what. Number 0 asks for no answer.
//
// Temporary. Those marked * have a twin, _TEMPORARY: the block that is freed is the one that the
// thread's previous event allocated, as far as its address tells.
//
// Sampling (sampler.h). ALLOC_SAMPLED is an ALLOC that was chosen with the probability of one in
// 1 << shift, and so stands for that many; shift is 1 to WIRE_SHIFT_MAX, size below 1 <<
// WIRE_SAMPLED_SIZE_BITS. It is freed as any other. LEFT_OUT says what of the blocks that were not
// chosen is alive: its bytes (signed) are those that the lane's thread left out so far, less those
// that it freed of what any thread left out; until the next LEFT_OUT they are right to a grain of
// SAMPLER_GRAIN_BYTES << grain. Of `count` of these blocks, of so many bytes, nothing will be said
// any more: they are no longer in that sum, and their frees are sent as if they had been recorded.
//
// Nursery (nursery.h). A pair is a block that was allocated and freed in the same tick, by its own
// thread, and was never sent; PAIRS are `count` of them, whose sizes are of one bucket
// (base/bucket.h). Blocks that are sent late are sent within the tick in which they were allocated,
// in any order. HIGH_WATER says that blocks that are counted as pairs, elsewhere, were alive
// together at some moment of this tick, with all those that are alive here and now.
//
// Order. But for that, records of one lane are in the thread's true order: ALLOC and REALLOC are
// written after the allocator returned, FREE before it is called. STAMP says when the event of the
// next record happened (stamp.h): once several threads have recorded each allocation and each free
// has one, and stamps order the events of all lanes. What has none came before all that have, but
// for what was held back: its block was allocated before all stamps. ALLOC_LATE is of a block that
// was held back since: after its own stamp, and before any later free of its address; it may have
// been freed by another thread.
#pragma once

#include <stdint.h>

enum wire_tag {
    WIRE_PAD = 1,
    WIRE_TICK = 2,
    WIRE_FREE = 3,
    WIRE_ALLOC = 4,
    WIRE_REALLOC = 5,
    WIRE_ALLOC_LARGE = 6,
    WIRE_REALLOC_LARGE = 7,
    WIRE_STACK = 8,
    WIRE_MODULE = 9,
    WIRE_TEXT = 10,
    WIRE_FREE_TEMPORARY = 11,
    WIRE_REALLOC_TEMPORARY = 12,
    WIRE_REALLOC_LARGE_TEMPORARY = 13,
    WIRE_PAIR = 14,
    WIRE_PAIR_TEMPORARY = 15,
    WIRE_MAPPING = 16,
    WIRE_PAIRS = 17,
    WIRE_ALLOC_SAMPLED = 19,
    WIRE_PAIRS_TEMPORARY = 20,
    WIRE_HIGH_WATER = 21,
    WIRE_STAMP = 22,
    WIRE_ALLOC_LATE = 23,
    WIRE_EVENT = 24,
    WIRE_QUESTION = 25,
    WIRE_LEFT_OUT = 26,
};

enum wire_mapping_kind {
    WIRE_MAPPING_ANONYMOUS = 1, // private
    WIRE_MAPPING_FILE = 2,
    WIRE_MAPPING_SHARED = 3, // shared memory without a name
    WIRE_MAPPING_BREAK = 4,  // brk and sbrk
    WIRE_MAPPING_SAME = 5,   // that of what lay at the old address
};

enum wire_stack_flags {
    WIRE_STACK_HAS_SLOT = 1 << 0,
    WIRE_STACK_UNFINISHED = 1 << 1, // the walk could not reach the thread's entry
};

enum wire_module_flags {
    WIRE_MODULE_RESET = 1 << 0, // code was unloaded: names, slots and modules before this are void
    WIRE_MODULE_MAIN = 1 << 1,  // the executable itself
};

enum wire_text_kind {
    WIRE_TEXT_EXECUTABLE = 1,   // absolute path
    WIRE_TEXT_COMMAND_LINE = 2, // arguments, each ended by a zero byte
    WIRE_TEXT_THREAD_NAME = 3,
    WIRE_TEXT_WORKING_DIRECTORY = 4,
    WIRE_TEXT_ALLOCATOR = 5, // path of the object whose malloc is called
    WIRE_TEXT_LIBC = 6,      // gnu_get_libc_version()
    WIRE_TEXT_MARK = 7,      // a moment that the program marks
    WIRE_TEXT_PHASE = 8,     // the name of what it begins
};

enum wire_text_flags {
    WIRE_TEXT_MORE = 1 << 0, // the next TEXT of this kind on this lane continues it
};

// Set in the address of a block of the program's own allocator (include/cairn.h). No user address
// has it, even under five-level paging.
#define WIRE_CUSTOM_BLOCK ((uint64_t)1 << 55)

#define WIRE_SLOT_BITS         24
#define WIRE_SIZE_BITS         40
#define WIRE_PAIRS_BITS        24 // of their count
#define WIRE_PAIRS_COUNT_MAX   ((1u << WIRE_PAIRS_BITS) - 1)
#define WIRE_LEFT_OUT_BITS     48 // of its bytes
#define WIRE_GRAIN_MAX         40u
#define WIRE_SIZE_MAX          (((uint64_t)1 << WIRE_SIZE_BITS) - 1)
#define WIRE_STACK_FRAMES_MAX  128u
#define WIRE_SHIFT_MAX         20u
#define WIRE_HIGH_WATER_MAX    64u // blocks
#define WIRE_SAMPLED_SIZE_BITS 32
#define WIRE_TEXT_BYTES_MAX    4096u
#define WIRE_MARK_BYTES_MAX    1024u
#define WIRE_RECORD_BYTES_MAX  8192u // the largest MODULE; below half of the smallest ring
#define WIRE_OFFSET_BITS       52
#define WIRE_OFFSET_MASK       (((uint64_t)1 << WIRE_OFFSET_BITS) - 1)
#define WIRE_MODULE_SLOTS      4094u // 1..4094; 0 is no module, 4095 marks WIRE_FRAME_CUT
#define WIRE_FRAME_CUT         ((uint64_t)0xfff << WIRE_OFFSET_BITS)

static inline uint64_t wire_word(enum wire_tag tag, uint64_t rest)
{
    return (uint64_t)tag | rest << 8;
}

// Of PAIR and PAIR_TEMPORARY; PAIRS* have a size of 0.
static inline uint64_t wire_pair(enum wire_tag tag, uint32_t slot, uint32_t size)
{
    return wire_word(tag, slot | (uint64_t)size << WIRE_SLOT_BITS);
}

static inline uint32_t wire_pair_slot(uint64_t head)
{
    return (uint32_t)(head >> 8) & ((1u << WIRE_SLOT_BITS) - 1);
}

static inline uint32_t wire_pair_size(uint64_t head)
{
    return (uint32_t)(head >> 32);
}

static inline uint32_t wire_pairs_count(uint64_t sums)
{
    return (uint32_t)sums & ((1u << WIRE_PAIRS_BITS) - 1);
}

static inline uint64_t wire_pairs_bytes(uint64_t sums)
{
    return sums >> WIRE_PAIRS_BITS;
}

// Word 1 of PAIRS and LEFT_OUT.
static inline uint64_t wire_pairs_sums(uint64_t count, uint64_t bytes)
{
    return bytes << WIRE_PAIRS_BITS | count;
}

static inline uint64_t wire_left_out(int64_t bytes, uint32_t grain)
{
    const uint64_t mask = ((uint64_t)1 << WIRE_LEFT_OUT_BITS) - 1;
    return wire_word(WIRE_LEFT_OUT,
                     ((uint64_t)bytes & mask) | (uint64_t)grain << WIRE_LEFT_OUT_BITS);
}

// The bytes of LEFT_OUT, and its grain. `rest`: all of word 0 after the tag.
static inline int64_t wire_left_out_bytes(uint64_t rest)
{
    return (int64_t)(rest << (64 - WIRE_LEFT_OUT_BITS)) >> (64 - WIRE_LEFT_OUT_BITS);
}

static inline uint32_t wire_left_out_grain(uint64_t rest)
{
    return (uint32_t)(rest >> WIRE_LEFT_OUT_BITS);
}

static inline uint64_t wire_slot_size(uint32_t slot, uint64_t size)
{
    return (uint64_t)slot << WIRE_SIZE_BITS | size;
}

// What a MAPPING record says, decoded.
struct wire_mapping {
    uint64_t address;
    uint64_t size_bytes; // 0: nothing was mapped
    uint64_t number;
    uint64_t old_address;
    uint64_t old_size_bytes; // 0: nothing was unmapped
    uint64_t old_number;
    uint32_t kind; // as sent: not necessarily an enum wire_mapping_kind
};
