// SPDX-License-Identifier: MIT
// importer: a file of another tool, read as the recording that cairn would have made of it.
//
// Each format is one file, import_<name>.c, with one const struct importer; importer.c lists them.
// Which one reads a file is decided by its first (unpacked) bytes, never by its name. An importer
// fills a recording_builder, as the reader of a .cairn file does a recording, and everything behind
// it treats both alike; what a format does not say is listed in rec_meta.unknown, so that nobody
// takes it for 0.
//
// A file that stops early, as those of killed runs do, is read as far as it goes, and `damage` says
// where that is. Everything else that makes no sense is refused in one sentence with its place.
// Trust: none. Memory is bounded by import.max_bytes, which follows the size of the (packed) file.
// Context: H; one thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "formats/import/unpacked.h"
#include "recording/write/recording_builder.h"

enum {
    IMPORT_HEAD_BYTES = 4096, // that recognizes() sees
    IMPORT_DAMAGE_BYTES = 256,
};

struct import {
    struct unpacked *in;              // borrowed
    struct recording_builder *b;      // borrowed; holds the root and process 0
    struct err_info *info;            // borrowed
    uint64_t max_bytes;               // of memory for what is read
    char damage[IMPORT_DAMAGE_BYTES]; // one clause on what is missing, "" for a whole file
};

struct importer {
    const char *name;   // as in rec_meta.source_format
    const char *phrase; // for progress: "reading ..."
    uint32_t unknown;   // enum rec_unknown: what its files never say
    bool (*recognizes)(struct bytes head);
    enum err (*read)(struct import *import);
};

// The importers, ended by NULL.
extern const struct importer *const importers[];

// The importer for a file that begins like this, NULL if there is none.
const struct importer *importer_find(struct bytes head);

// Reads what `in` holds into `out`, which then owns its arrays. `damage` (of
// IMPORT_DAMAGE_BYTES) is "" for a whole file.
enum err importer_read(const struct importer *importer,
                       struct unpacked *in,
                       struct recording *out,
                       char *damage,
                       struct err_info *info) MUST_USE;

// For importers.

// The id of text[0..len), up to its first zero byte.
enum err import_string(struct import *import, struct bytes text, rec_string *out_id) MUST_USE;

// "'x', line 12: <why>".
enum err import_refuse_line(struct import *import, enum err err, const char *why) MUST_USE;

// Says in the recording that its figures are estimates.
enum err import_note_sampling(struct import *import, uint64_t period_bytes) MUST_USE;

// ERR_LIMIT with a sentence if `used_bytes` and the builder's tables are more than allowed.
enum err import_check_memory(struct import *import, uint64_t used_bytes) MUST_USE;
