// SPDX-License-Identifier: MIT
// heaptrack_file: what the parts of the heaptrack importer share while they read one file.
//
// A heaptrack file is lines of text: a letter, then hexadecimal numbers and strings. Raw files,
// which the recorded program wrote, and interpreted ones, which heaptrack_interpret made of them,
// share their header and clock:
//
//            raw                                  interpreted
//   code     x, m: modules; t ip parent           s string; i ip with its names; t i parent
//   blocks   + size trace address; - address      a size trace; + a; - a
//   both     v version, X command line, I pages, S suppression, A attached, c ms, R rss, # comment
//
// import_heaptrack.c reads the lines of both, heaptrack_code.c those on code, heaptrack_events.c
// those on blocks. Context: H; one thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregate/totals/heap_totals.h"
#include "formats/import/importer.h"

// Blocks of one kind that were allocated in one slice.
struct birth {
    uint64_t born_ms;
    uint64_t count;
    uint32_t older; // in heaptrack.births, or REC_NONE
};

// What an interpreted file allocates: a size and a stack, which is a row.
struct allocation_kind {
    uint64_t size_bytes;
    struct birth youngest;
    uint32_t row;
    uint32_t twin; // a kind of the same row and size, or REC_NONE
};

// A block of a raw file.
struct raw_block {
    uint64_t size_bytes;
    uint64_t born_ms;
    uint32_t row;
    uint32_t next; // a younger one at the same address; or the next free entry; or REC_NONE
};

// Where a module lay in memory.
struct raw_range {
    uint64_t start;
    uint64_t end;
    uint64_t base;
    uint32_t module;
};

DEFINE_VEC(birth_vec, struct birth);
DEFINE_VEC(allocation_kind_vec, struct allocation_kind);
DEFINE_VEC(raw_block_vec, struct raw_block);
DEFINE_VEC(raw_range_vec, struct raw_range);

#define HEAPTRACK_NOTHING UINT64_MAX

struct heaptrack {
    struct import *import; // borrowed
    struct heap_totals totals;
    uint64_t rss_bytes[SERIES_SLICES_MAX]; // the highest of each time slice, 0 where none is known
    uint64_t version;
    uint32_t thread;
    bool is_raw;         // a line was of a raw file
    bool is_interpreted; // a line was of an interpreted file; never both
    bool has_end_mark;
    bool has_pages;
    uint64_t page_bytes;
    struct strbuf command;      // owned
    struct strbuf suppressions; // owned; a line each
    struct map_u64 module_of;   // owned; by rec_string
    uint64_t last_allocated;    // by the event before: a kind, in a raw file an address; or NOTHING

    // Interpreted files.
    struct u32_vec strings;           // owned; by index - 1
    struct allocation_kind_vec kinds; // owned
    struct birth_vec births;          // owned; older ones, linked; also the free ones
    uint32_t free_birth;              // in births, or REC_NONE
    uint32_t indexed_kinds; // how many are in kind_of: none before a number is freed as another
    struct map_u64 kind_of; // owned; by (row, size)

    // Raw files.
    rec_string executable;
    struct raw_range_vec ranges; // owned; sorted by start if is_sorted
    bool is_sorted;
    struct map_u64 frame_of;     // owned; by ip
    struct raw_block_vec blocks; // owned
    struct map_u64 block_of;     // owned; by address, the oldest one
    uint32_t free_block;         // in blocks, or REC_NONE
};

// Takes the next number off `line`, which a space or its beginning precedes. False, and nothing
// taken, if there is none or it has more than 16 digits.
static inline bool heaptrack_number(struct bytes *line, uint64_t *out)
{
    const uint8_t *at = line->data;
    const uint8_t *end = at + line->len;
    at += at < end && *at == ' ';
    const uint8_t *start = at;
    uint64_t value = 0;
    for (; at < end; at++) {
        uint8_t digit = (uint8_t)(*at - '0');
        if (digit > 9) {
            digit = (uint8_t)(*at - 'a' + 10);
            if (digit < 10 || digit > 15) {
                break;
            }
        }
        value = value << 4 | digit;
    }
    bool is_sound = at > start && at - start <= 16 && (at == end || *at == ' ');
    if (is_sound) {
        *line = (struct bytes){.data = at, .len = (size_t)(end - at)};
        *out = value;
    }
    return is_sound;
}

// Takes a string: in version 3 its length stands before it; else it goes to the next space if
// `is_word`, or to the end.
bool heaptrack_string(const struct heaptrack *h,
                      struct bytes *line,
                      bool is_word,
                      struct bytes *out);

// "'x', line 12: <why>" with ERR_CORRUPT.
enum err heaptrack_refuse(struct heaptrack *h, const char *why) MUST_USE;

// One line each, from behind its letter. Errors: with a sentence, or ERR_NO_MEMORY and ERR_LIMIT
// without.
enum err heaptrack_read_string(struct heaptrack *h, struct bytes line) MUST_USE;
enum err heaptrack_read_instruction(struct heaptrack *h, struct bytes line) MUST_USE;
enum err heaptrack_read_trace(struct heaptrack *h, struct bytes line) MUST_USE;
enum err heaptrack_read_executable(struct heaptrack *h, struct bytes line) MUST_USE;
enum err heaptrack_read_module(struct heaptrack *h, struct bytes line) MUST_USE;

enum err heaptrack_read_kind(struct heaptrack *h, struct bytes line) MUST_USE;
enum err heaptrack_read_allocation(struct heaptrack *h, struct bytes line) MUST_USE;
enum err heaptrack_read_free(struct heaptrack *h, struct bytes line) MUST_USE;

// Reads the events that lie in the window of an interpreted file, up to the first other line.
enum err heaptrack_read_run(struct heaptrack *h) MUST_USE;

// Fills the builder's rows, their history, time slices, RSS samples and totals.
enum err heaptrack_fill_tables(struct heaptrack *h) MUST_USE;

uint64_t heaptrack_bytes(const struct heaptrack *h); // in use beside the builder's tables, roughly
