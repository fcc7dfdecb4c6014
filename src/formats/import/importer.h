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
// Context: H; one thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "formats/import/importer.h"
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
};

struct importer {
    const char *name;   // value of rec_meta.source_format
    const char *phrase; // for progress: "reading ..."
    uint32_t unknown;   // enum rec_unknown: figures that the format never has
    bool (*recognizes)(struct bytes head);
    enum err (*read)(struct import *import);
};

// Read the content of `in` into `out`, which then owns its arrays. `damage` (of
// IMPORT_DAMAGE_BYTES) is "" for a whole file.
enum err importer_read(const struct importer *importer,
                       struct unpacked *in,
                       struct recording *out,
                       char *damage,
                       struct err_info *info) MUST_USE;

// For importers.

// Find or add the id of text[0..len), up to its first zero byte.
enum err import_string(struct import *import, struct bytes text, rec_string *out_id) MUST_USE;

// Find or add the module of that path.
enum err import_module(struct import *import, struct bytes path, uint32_t *out) MUST_USE;

// Take a word, or a number of at most 18 digits (base 10) or 16 (base 16), off the start of the
// text. Return false if it is not there.
bool import_take_text(struct bytes *text, const char *word);
bool import_take_number(struct bytes *text, unsigned base, uint64_t *out);

// Refuse the file: "'x', line 12: <why>".
enum err import_refuse_line(struct import *import, enum err err, const char *why) MUST_USE;

// What a file says of one stack.
struct import_counts {
    uint64_t live_blocks;
    uint64_t live_bytes;
    uint64_t all_blocks; // of the whole run; a file without it has 0
    uint64_t all_bytes;
};

// Add the counts to a row. Return false if the sums of all rows exceed what a heap can have.
bool import_count(struct import *import, uint32_t row, const struct import_counts *counts) MUST_USE;

// Note in the recording that its figures are estimates.
enum err import_note_sampling(struct import *import, uint64_t period_bytes) MUST_USE;

// Check the memory limit: ERR_LIMIT with a sentence if `used_bytes` and the builder's tables exceed
// it.
enum err import_check_memory(struct import *import, uint64_t used_bytes) MUST_USE;
