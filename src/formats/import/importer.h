// SPDX-License-Identifier: MIT
// importer: read a file of another tool as the recording that cairn would have made.
//
// Each format is one file, import_<name>.c, with one const struct importer; import_formats.c lists
// them.
// The first (unpacked) bytes of a file choose the importer, never its name. An importer fills a
// recording_builder, and later code treats the result like a recording from a .cairn file.
// rec_meta.unknown lists the figures that a format lacks, so that they are not shown as 0.
//
// A truncated file, as of a killed run, is read up to its end, and `damage` describes what is
// missing. Other malformed content is refused in one sentence with its position. Trust: none.
// import.max_bytes bounds the memory; it follows the size of the (packed) file.
//
// An import succeeds or ends as a whole. What cannot go on calls import_end, which returns to
// importer_read; that releases the importer's state and the half-built tables. So an importer
// returns no errors, and owns nothing but what is in its state.
// Context: H; one thread.
#pragma once

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/err.h"
#include "formats/import/unpacked.h"
#include "recording/write/recording_builder.h"

enum {
    IMPORT_HEAD_BYTES = 4096, // length of the `head` for recognizes()
    IMPORT_DAMAGE_BYTES = 256,
};

struct import {
    struct unpacked *in;              // borrowed
    struct recording_builder *b;      // borrowed; holds the root and process 0
    struct err_info *info;            // borrowed
    uint64_t max_bytes;               // limit for the imported data in memory
    char damage[IMPORT_DAMAGE_BYTES]; // one clause about what is missing, "" for a whole file
    jmp_buf end;                      // where import_end goes on
    enum err outcome;
};

struct importer {
    const char *name;   // value of rec_meta.source_format
    const char *phrase; // for progress: "reading ..."
    uint32_t unknown;   // enum rec_unknown: figures that the format never has
    bool (*recognizes)(struct bytes head);
    size_t state_bytes; // of the importer's state, which begins as zero
    void (*read)(struct import *import, void *state);
    void (*release)(void *state);
};

// Read the content of `in` into `out`, which then owns its arrays. `damage` (of
// IMPORT_DAMAGE_BYTES) is "" for a whole file.
enum err importer_read(const struct importer *importer,
                       struct unpacked *in,
                       struct recording *out,
                       char *damage,
                       struct err_info *info) MUST_USE;

// For importers. Each function may end the import.

// End the import: importer_read returns `err`. All but ERR_NO_MEMORY and ERR_LIMIT need a sentence
// in import->info.
_Noreturn void import_end(struct import *import, enum err err);

// End it unless `err` is ERR_OK.
static inline void import_need(struct import *import, enum err err)
{
    if (UNLIKELY(err != ERR_OK)) {
        import_end(import, err);
    }
}

// End it with "'x', line 12: <why>" unless `is_sound`.
_Noreturn void import_refuse_line(struct import *import, enum err err, const char *why);
static inline void import_require(struct import *import, bool is_sound, const char *why)
{
    if (UNLIKELY(!is_sound)) {
        import_refuse_line(import, ERR_CORRUPT, why);
    }
}

// Take the next line. Return false at the end, and for a line that is cut off: half a number may be
// a different one.
bool import_next_line(struct import *import, struct bytes *out);

// Return the id of text[0..len), up to its first zero byte.
rec_string import_string(struct import *import, struct bytes text);

// Return the module of that path, the node of a frame and its caller, the row of a stack.
uint32_t import_module(struct import *import, struct bytes path);
uint32_t import_module_of(struct import *import, rec_string path);
uint32_t import_node(struct import *import, uint32_t parent, uint32_t frame);
uint32_t import_row(struct import *import, uint32_t thread, uint32_t node);

// Add a thread, or a frame without names.
uint32_t import_thread(struct import *import, uint32_t thread_id, const char *name);
uint32_t import_frame(struct import *import, uint32_t module, uint64_t offset);

// Take a word, or a number of at most 18 digits (base 10) or 16 (base 16), off the start of the
// text. Return false if it is not there.
bool import_take_text(struct bytes *text, const char *word);
bool import_take_number(struct bytes *text, unsigned base, uint64_t *out);

// What a file says of one stack.
struct import_counts {
    uint64_t live_blocks;
    uint64_t live_bytes;
    uint64_t all_blocks; // of the whole run; a file without it has 0
    uint64_t all_bytes;
};

// Add the counts to a row. Return false if the sums of all rows exceed what a heap can have.
bool import_count(struct import *import, uint32_t row, const struct import_counts *counts) MUST_USE;

// Note something in the recording, or that its figures are estimates.
void import_note(struct import *import, const char *name, uint64_t value, const char *text);
void import_note_sampling(struct import *import, uint64_t period_bytes);

// Check the memory limit: `used_bytes` and the builder's tables.
void import_check_memory(struct import *import, uint64_t used_bytes);
