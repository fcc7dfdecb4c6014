// SPDX-License-Identifier: MIT
// heaptrack_file: the state and functions that the parts of the heaptrack importer share.
//
// A heaptrack file is lines of text: a letter, then hexadecimal numbers and strings. The recorded
// program writes raw files, and heaptrack_interpret converts them into interpreted ones. Both have
// the same header and clock:
//
//            raw                                  interpreted
//   code     x, m: modules; t ip parent           s string; i ip with its names; t i parent
//   blocks   + size trace address; - address      a size trace; + a; - a
//   both     v version, X command line, I pages, S suppression, A attached, c ms, R rss, # comment
//
// import_heaptrack.c reads the lines of both, heaptrack_code.c the lines about code,
// heaptrack_events.c those about blocks. Context: H; one thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregate/totals/heap_totals.h"
#include "aggregate/totals/row_history.h"
#include "formats/import/importer.h"

// Blocks of one kind that were allocated in one time slice.
struct birth {
    uint64_t born_ms;
    uint64_t count;
    uint32_t older; // in heaptrack.births, or REC_NONE
};

// A size and a stack (a row), as interpreted files list them.
struct allocation_kind {
    uint64_t size_bytes;
    struct birth youngest;
    uint32_t row;
    uint32_t twin; // another kind of the same row and size, or REC_NONE
};

// A block of a raw file.
struct raw_block {
    uint64_t size_bytes;
    uint64_t born_ms;
    uint32_t row;
    uint32_t next; // a younger block at the same address; or the next free entry; or REC_NONE
};

// The addresses of a module.
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
    struct row_history history;            // owned; of the rows in `totals`, at the end
    uint64_t rss_bytes[SERIES_SLICES_MAX]; // highest of each time slice, 0 if unknown
    uint64_t version;
    uint32_t thread;
    bool is_raw;         // the file has a line of raw files
    bool is_interpreted; // the file has a line of interpreted files; is_raw is false
    bool has_end_mark;
    bool has_pages;
    uint64_t page_bytes;
    struct strbuf command;      // owned
    struct strbuf suppressions; // owned; one a line
    uint64_t last_allocated;    // by the previous event: a kind, or an address in a raw file; or
                                // NOTHING

    // Interpreted files.
    struct u32_vec strings;           // owned; by index - 1
    struct allocation_kind_vec kinds; // owned
    struct birth_vec births;          // owned; linked older births, and free entries
    uint32_t free_birth;              // in births, or REC_NONE
    uint32_t indexed_kinds; // number of kinds in kind_of: 0 until a kind is freed under another
                            // number
    struct map_u64 kind_of; // owned; by (row, size)

    // Raw files.
    rec_string executable;
    struct raw_range_vec ranges; // owned; sorted by start if is_sorted
    bool is_sorted;
    struct map_u64 frame_of;     // owned; by ip
    struct raw_block_vec blocks; // owned
    struct map_u64 block_of;     // owned; by address, the oldest block
    uint32_t free_block;         // in blocks, or REC_NONE
};

// Take the next number off `line`, after an optional space. Return false and take nothing if there
// is none or it has more than 16 digits.
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

// Take a string. In version 3 its length precedes it. Otherwise it extends to the next space if
// `is_word`, else to the end of the line.
bool heaptrack_string(const struct heaptrack *h,
                      struct bytes *line,
                      bool is_word,
                      struct bytes *out);

// End the import with "'x', line 12: <why>" unless `is_sound`.
static inline void heaptrack_require(struct heaptrack *h, bool is_sound, const char *why)
{
    import_require(h->import, is_sound, why);
}

// Read one line each, after its letter.
void heaptrack_read_string(struct heaptrack *h, struct bytes line);
void heaptrack_read_instruction(struct heaptrack *h, struct bytes line);
void heaptrack_read_trace(struct heaptrack *h, struct bytes line);
void heaptrack_read_executable(struct heaptrack *h, struct bytes line);
void heaptrack_read_module(struct heaptrack *h, struct bytes line);

void heaptrack_read_kind(struct heaptrack *h, struct bytes line);
void heaptrack_read_allocation(struct heaptrack *h, struct bytes line);
void heaptrack_read_free(struct heaptrack *h, struct bytes line);

// Read the events in the window of an interpreted file, up to the first other line.
void heaptrack_read_run(struct heaptrack *h);

// Fill the builder's rows, their history, time slices, RSS samples and totals.
void heaptrack_fill_tables(struct heaptrack *h);
