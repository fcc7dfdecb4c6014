// SPDX-License-Identifier: MIT
// wire: the records that travel in a lane.
//
// A record is one or more 64-bit words and never wraps around the end of the ring (WIRE_PAD fills
// the rest). Byte 0 of the first word is its tag. Addresses have 56 bits (the user half under
// five-level paging) and fill the other seven bytes of word 0.
//
//   tag            word 0                     words that follow
//   PAD            words (56)                 padding: so many words, this one included
//   TICK           ms since start (56)        -
//   STACK          count 8, flags 8, slot 24  base name ; count frames, from base towards the leaf
//   MODULE         slot 16, id bytes 8,       bias ; start ; end ; build-id, then path, each padded
//                  path bytes 16, flags 8     with zeros to whole words
//   TEXT           kind 8, flags 8, bytes 16  the bytes, padded with zeros to whole words
//   MAPPING        address (56)               slot 24 | kind 40 ; size ; number ; old address ;
//                                             old size ; old number
//   EVENT          slot 24                    weight
//   QUERY       number 32, what 8, scope 8 -
//   GREW           old bytes (56)             slot 24 | size 40
//   BOOK           see books/book_layout.h
//   ROW            slot 24, row 24, level 8   -
//   BLOCK_BORN     address (56)               row 24 | time of birth 40 ; size 64 ; peak 32
//   BLOCK_FREED    address (56)               row 24 | time of birth 40 ; size 64 ;
//                                             peak 32 low | time of the free 32 high
//
// Fields of word 0 after the tag are packed from bit 8 upwards in the order given.
//
// Stacks. A lane has a dictionary, slot -> stack, that both sides hold: ROW names a stack by its
// slot. STACK defines `slot` as the stack that continues from the node named `base` (0 is the root:
// the thread's entry side) by `count` more frames. The names of its nodes follow from
// stack_name(parent's name, frame's pc). Without STACK_HAS_SLOT it only introduces nodes: stacks of
// more than WIRE_STACK_FRAMES_MAX frames are sent this way. The base was introduced on the same
// lane before, since the last MODULE with WIRE_MODULE_RESET. A frame is module slot 12 high |
// offset 52 low. pc = bias + offset of the module that the latest MODULE for this slot on this lane
// describes. Slot 0 means no module; its offset is the pc itself. Frames are return addresses (look
// them up at pc - 1) unless the flags mark them. The pseudo frame WIRE_FRAME_CUT replaces the
// omitted middle of a deep stack; its pc for naming is WIRE_FRAME_CUT itself.
//
// Mappings. MAPPING reports that [old address, + old size) was unmapped, and then [address, + size)
// was mapped by the stack in `slot`. A size of 0 means that the step did not happen. The program's
// own calls are reported, and those of allocators other than libc's. The numbers count the changes
// of a process: of two changes of one address the later one has the higher number, in whatever
// order their records are read. Ranges are in bytes; the kernel rounds both ends up to pages.
//
// Events. EVENT reports an event of that weight that is not an allocation; the leaf of its stack
// names it. QUERY asks for the sums of all records before it; the lane's header receives the
// response (stats_query.h). The field `what` is an enum stats_query_what. Number 0 asks for no
// response.
//
// Growth. GREW states that a realloc of the stack in that slot grew a block. The size is that of
// the new one. Blocks below WIRE_GREW_MIN have none.
//
// Books (target/producer/book). BOOK says what a thread counted of a row, of its own or of another
// thread. ROW says that the stack in `slot` has the row of that number from now on, whose blocks
// are chosen at that level (sampling_level.h), or, with number 0, no row. The thread allocates
// nothing with the number that the slot had before, and each such block of it is in a BOOK before
// this ROW. Numbers are of the process, and of one row at a time. BOOK may come before the ROW of
// another lane. BLOCK_BORN and BLOCK_FREED name single blocks whose events a
// BOOK counts, with the number of the latest peak that the event has seen (block_records.h).
//
// Order. Records of one lane are in the thread's true order. Records of several lanes need none.
#pragma once

#include <stdint.h>

#include "session/books/block_words.h"
#include "session/books/book_layout.h"
#include "session/books/custom_block.h"

enum wire_tag {
    WIRE_PAD = 1,
    WIRE_TICK = 2,
    WIRE_STACK = 8,
    WIRE_MODULE = 9,
    WIRE_TEXT = 10,
    WIRE_MAPPING = 16,
    WIRE_EVENT = 24,
    WIRE_QUERY = 25,
    WIRE_GREW = 27,
    WIRE_BOOK = BOOK_TAG,
    WIRE_ROW = 29,
    WIRE_BLOCK_BORN = 30,
    WIRE_BLOCK_FREED = 31,
};

enum wire_mapping_kind {
    WIRE_MAPPING_ANONYMOUS = 1, // private
    WIRE_MAPPING_FILE = 2,
    WIRE_MAPPING_SHARED = 3, // shared memory without a name
    WIRE_MAPPING_BREAK = 4,  // brk and sbrk
    WIRE_MAPPING_SAME = 5,   // the kind of the mapping at the old address
    WIRE_MAPPING_HEAP = 6,   // by an allocator, for blocks; its stack is the allocator's frame
};

enum wire_stack_flags {
    WIRE_STACK_HAS_SLOT = 1 << 0,
    WIRE_STACK_UNFINISHED = 1 << 1, // the walk could not reach the thread's entry
};

enum wire_module_flags {
    WIRE_MODULE_RESET = 1 << 0, // code was unloaded: earlier names, slots and modules are void
    WIRE_MODULE_MAIN = 1 << 1,  // the executable itself
};

enum wire_text_kind {
    WIRE_TEXT_EXECUTABLE = 1,   // absolute path
    WIRE_TEXT_COMMAND_LINE = 2, // arguments, each ended by a zero byte
    WIRE_TEXT_THREAD_NAME = 3,
    WIRE_TEXT_WORKING_DIRECTORY = 4,
    WIRE_TEXT_ALLOCATOR = 5, // path of the object whose malloc the program calls
    WIRE_TEXT_LIBC = 6,      // gnu_get_libc_version()
    WIRE_TEXT_MARK = 7,      // a moment that the program marked
    WIRE_TEXT_PHASE = 8,     // the name of the phase that begins
};

enum wire_text_flags {
    WIRE_TEXT_MORE = 1 << 0, // the next TEXT of this kind on this lane continues it
};

#define WIRE_SLOT_BITS        24
#define WIRE_SIZE_BITS        40
#define WIRE_SIZE_MAX         (((uint64_t)1 << WIRE_SIZE_BITS) - 1)
#define WIRE_STACK_FRAMES_MAX 128u
#define WIRE_TEXT_BYTES_MAX   4096u
#define WIRE_MARK_BYTES_MAX   1024u
#define WIRE_RECORD_BYTES_MAX 8192u // the largest MODULE; below half of the smallest ring
#define WIRE_GREW_MIN         4096u // bytes
#define WIRE_BIRTH_BITS       40    // ms
#define WIRE_BLOCK_WORDS      4
#define WIRE_OFFSET_BITS      52
#define WIRE_OFFSET_MASK      (((uint64_t)1 << WIRE_OFFSET_BITS) - 1)
#define WIRE_MODULE_SLOTS     4094u // 1..4094; 0 means no module, 4095 marks WIRE_FRAME_CUT
#define WIRE_FRAME_CUT        ((uint64_t)0xfff << WIRE_OFFSET_BITS)

static inline uint64_t wire_word(enum wire_tag tag, uint64_t rest)
{
    return (uint64_t)tag | rest << 8;
}

static inline enum wire_tag wire_tag_of(uint64_t head)
{
    return (enum wire_tag)(head & 0xff);
}

// Return the slot of EVENT and ROW.
static inline uint32_t wire_head_slot(uint64_t head)
{
    return (uint32_t)(head >> 8) & ((1u << WIRE_SLOT_BITS) - 1);
}

// Return word 0 of ROW.
static inline uint64_t wire_row(uint32_t slot, uint32_t row, uint32_t level)
{
    return wire_word(WIRE_ROW, slot | (uint64_t)row << WIRE_SLOT_BITS |
                                   (uint64_t)level << (WIRE_SLOT_BITS + WORD_ROW_BITS));
}

static inline uint32_t wire_row_level(uint64_t head)
{
    return (uint32_t)(head >> (8 + WIRE_SLOT_BITS + WORD_ROW_BITS));
}

static inline uint64_t wire_slot_size(uint32_t slot, uint64_t size)
{
    return (uint64_t)slot << WIRE_SIZE_BITS | size;
}

// A decoded MAPPING record.
struct wire_mapping {
    uint64_t address;
    uint64_t size_bytes; // 0: nothing was mapped
    uint64_t number;
    uint64_t old_address;
    uint64_t old_size_bytes; // 0: nothing was unmapped
    uint64_t old_number;
    uint32_t kind; // as sent: not necessarily an enum wire_mapping_kind
};
