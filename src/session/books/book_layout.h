// SPDX-License-Identifier: MIT
// book_layout: a thread's book: what it has counted of each row and not sent yet, and the record
// that says it (BOOK, wire.h).
//
//   a counter = row | peak share | blocks allocated, by size | blocks freed, by lifetime | cohorts
//
// A cell holds blocks and their bytes in one word, so each event is one store, and a thread that is
// killed between two stores leaves whole cells. A cell's place follows from its bucket; sizes have
// two places each. A counter whose places are taken by other buckets is sent, and begins anew.
// Events of one row add up in any order, whichever threads count them. The masks say which cells
// are used; a counter keeps its row when it was sent, for the row's next event.
//
//   BOOK   tag 8 | row 24 | sizes 8 | lives 8 | cohorts 8 | flags 8
//          number of the peak 32 | blocks before it 32 (signed)
//          bytes before it (signed)             with BOOK_HAS_BEFORE
//          temporary blocks, a cell             with BOOK_HAS_TEMPORARY
//          buckets: a byte for each size, then for each lifetime, padded to whole words
//          the cells of sizes, then those of lifetimes
//          for each cohort: time of birth, a cell
//          weight                               with BOOK_HAS_WEIGHT; all counts so often
//
// The thread T writes counters, in its lane; R, the recorder, reads those of a thread that ended
// or sleeps (book_reader.h), under the lock of the head. Trust: R treats them as hostile.
// Context: T and H; pure.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

// A thread sends its book so often, and the recorder reads as often. The records of a tick would
// have few events each.
#define BOOK_HOLD_MS 8u

#define BOOK_TAG         28u  // WIRE_BOOK
#define BOOK_COUNTERS    512u // a power of two, a multiple of 64
#define BOOK_SIZES_FIRST 16u  // cells of four octaves
#define BOOK_SIZES       18u  // and two for sizes whose first cell has another bucket
#define BOOK_LIVES       8u
#define BOOK_COHORTS     8u
#define BOOK_CELLS       (BOOK_SIZES + BOOK_LIVES)
#define BOOK_WORDS_MAX   (4 + (BOOK_CELLS + 7) / 8 + BOOK_CELLS + 2 * BOOK_COHORTS + 1)
#define BOOK_COHORT_BITS 4 // times of birth are multiples of 16 ms

// A cell: bytes 48 | blocks 16.
#define BOOK_COUNT_BITS 16
#define BOOK_COUNT_MAX  ((1u << BOOK_COUNT_BITS) - 1)
#define BOOK_BYTES_MAX  (((uint64_t)1 << (64 - BOOK_COUNT_BITS)) - 1)
// So many for each lifetime that the temporary ones of all have room in one cell.
#define BOOK_LIFE_COUNT_MAX (BOOK_COUNT_MAX / BOOK_LIVES)

enum book_flags {
    BOOK_HAS_BEFORE = 1 << 0,
    BOOK_HAS_TEMPORARY = 1 << 1,
    BOOK_HAS_WEIGHT = 1 << 2,
};

struct book_counter {
    _Alignas(64) uint32_t row; // 0: unused
    uint32_t peak_number;      // the newest that its events have seen
    int64_t net_bytes;         // allocated less freed
    int64_t before_bytes;      // that of events before that peak
    int32_t net_blocks;
    int32_t before_blocks;
    uint32_t sizes_used;
    uint8_t lives_used;
    uint8_t cohorts_used;
    uint8_t life_buckets[BOOK_LIVES];
    uint8_t size_buckets[BOOK_SIZES];
    uint64_t lives[BOOK_LIVES]; // cells
    uint64_t temporary;         // a cell
    uint32_t is_sending;
    uint32_t born[BOOK_COHORTS];    // time of birth >> BOOK_COHORT_BITS
    uint64_t cohorts[BOOK_COHORTS]; // of frees of blocks that are from an earlier slice
    uint64_t sizes[BOOK_SIZES];     // cells
};
_Static_assert(sizeof(struct book_counter) == 384 && offsetof(struct book_counter, lives) == 64,
               "six cache lines; an allocation and a free need two each");

enum book_owner {
    BOOK_OF_NEITHER = 0,
    BOOK_OF_THREAD = 1,
    BOOK_OF_RECORDER = 2,
};

// The head of a lane's book, in the lane's header.
struct book_head {
    _Atomic uint64_t tick_ms; // T: of its latest TICK; what it has counted is younger than sent_ms
    _Atomic uint64_t sent_ms; // T, release: when the book was sent last
    _Atomic uint32_t owner;   // enum book_owner
    uint32_t has_counted;     // T: some counter may have counted; R sets 0 when it has taken all
    uint64_t mark;            // T: where the record ends of the counter that is being sent
    uint64_t used[BOOK_COUNTERS / 64]; // T, and R likewise: bit set: that counter may have counted
};

struct book_tables {
    struct book_counter counters[BOOK_COUNTERS];
};
#define BOOK_BYTES (sizeof(struct book_tables))

// Return the two places of the counter of a row.
ALWAYS_INLINE uint32_t book_first_place(uint32_t row)
{
    return row % BOOK_COUNTERS;
}

ALWAYS_INLINE uint32_t book_second_place(uint32_t row)
{
    return row * 0x9e3779b1u >> 23; // of 512
}
_Static_assert(BOOK_COUNTERS == 1u << (32 - 23), "all places");

static inline uint32_t book_cell_count(uint64_t cell)
{
    return (uint32_t)cell & BOOK_COUNT_MAX;
}

static inline uint64_t book_cell_bytes(uint64_t cell)
{
    return cell >> BOOK_COUNT_BITS;
}

// Return the cell with another block. Its caller has asked book_cell_has_room.
ALWAYS_INLINE uint64_t book_cell_with(uint64_t cell, uint64_t size_bytes)
{
    return cell + (size_bytes << BOOK_COUNT_BITS) + 1;
}

ALWAYS_INLINE bool book_cell_has_room(uint64_t cell, uint64_t size_bytes)
{
    return book_cell_count(cell) < BOOK_COUNT_MAX &&
           size_bytes <= BOOK_BYTES_MAX - book_cell_bytes(cell);
}

// Whether nothing is counted.
ALWAYS_INLINE bool book_is_empty(const struct book_counter *counter)
{
    return (counter->sizes_used | counter->lives_used) == 0;
}

// Allocated less freed.
struct book_net {
    int64_t bytes;
    int64_t blocks;
};

// Write the record of a counter. Return its words, at most BOOK_WORDS_MAX; 0: nothing is counted.
uint32_t book_record(const struct book_counter *counter, uint64_t *words);

// Do the same for a counter of one block that was chosen (sampling_level.h).
uint32_t book_record_weighted(const struct book_counter *counter, uint64_t weight, uint64_t *words);

// A record, decoded.
struct book_entry {
    uint32_t row;
    uint32_t peak_number;
    int64_t before_bytes;
    int32_t before_blocks;
    uint32_t size_count;
    uint32_t life_count;
    uint32_t cohort_count;
    uint32_t weight;    // of each block and byte
    uint64_t temporary; // a cell
    uint8_t size_buckets[BOOK_SIZES];
    uint8_t life_buckets[BOOK_LIVES];
    uint64_t sizes[BOOK_SIZES];
    uint64_t lives[BOOK_LIVES];
    uint64_t cohorts[BOOK_COHORTS];
    uint64_t born_ms[BOOK_COHORTS];
};

// Return what an entry adds in all.
struct book_net book_entry_net(const struct book_entry *entry);

// Return the words of the record that begins with `head`; 0: it is malformed.
uint32_t book_record_words(uint64_t head);

// Decode a whole record. false: it is malformed.
bool book_record_read(const uint64_t *words, struct book_entry *out);
