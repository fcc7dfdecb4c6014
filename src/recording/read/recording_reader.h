// SPDX-License-Identifier: MIT
// recording_reader: a recording from a file, whatever state the file is in.
//
// The last whole snapshot is taken; if none is whole, what is left of the longest. A table of a
// damaged snapshot ends where its first unreadable chunk begins. Whatever the file says, the
// recording that comes out keeps the invariants on which memory safety rests: every index is in
// its table or REC_NONE, node 0 is the root, parents come before their children, the bucket and
// slice numbers exist, cells, buckets and cohorts are sorted, strings are terminated
// (recording_repair.h). Sums may still be wrong in a damaged file: recording_verify tells.
//
// Memory and work are bounded by recording_limits. Context: H; one thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "recording/format/tables.h"

enum recording_condition {
    RECORDING_COMPLETE, // finished by its writer, and all of it is here
    RECORDING_GROWING,  // a whole snapshot, but the file has no end: being written, or cut after it
    RECORDING_TRUNCATED, // the file ends too early
    RECORDING_DAMAGED,   // something within it cannot be read
    RECORDING_PRUNED,    // nothing is wrong with it, but there is no memory for all of it
};

struct recording_open_result {
    enum recording_condition condition;
    uint32_t generation;     // of the snapshot that was taken
    uint32_t snapshot_count; // whole or not
    uint64_t file_bytes;
    uint64_t unreadable_bytes; // in the file, belonging to no whole chunk
    uint64_t damaged_chunks;   // of the snapshot that was taken, left out
    uint64_t missing_entries;  // announced, but not there, over all tables
    uint64_t dropped_entries;  // there, but referring to something that is not
    uint64_t repaired_entries; // kept, with a reference or a figure that had to be changed
    uint64_t unknown_chunks;   // of types that this version does not know; skipped
    char missing[384];         // one sentence without a full stop; "" if nothing is missing
};

// What a file may ask of us: at most base_bytes + ratio * its own size, each for the tables in
// memory and for the payloads decompressed; and for the tables at most most_bytes. The history of
// rows gets half of it, and is left out as a whole if that is not enough.
struct recording_limits {
    uint64_t base_bytes;
    uint64_t ratio;
    uint64_t most_bytes;   // 0: a share of what memory this process can hope for
    bool ignores_contents; // walk the whole file even if it has a table of contents
};

extern const struct recording_limits recording_default_limits;

// Opens `path`; `out` then owns its arrays (recording_release). ERR_OK also for what is damaged:
// look at `result`, which may be NULL. Refused, each with its sentence:
//   ERR_NOT_FOUND, ERR_PERMISSION, ERR_IO
//   ERR_INVALID       a directory or another thing that is no file; or a file that is no recording
//   ERR_TRUNCATED     empty, or cut before anything that could be shown
//   ERR_UNSUPPORTED   from a newer version
//   ERR_CORRUPT       damaged so that nothing is left that could be shown
//   ERR_LIMIT         more than recording_limits allows; ERR_NO_MEMORY
enum err recording_open(const char *path,
                        struct recording *out,
                        struct recording_open_result *result,
                        struct err_info *info) MUST_USE;

// The same from an open descriptor, or from bytes; `name` stands in errors for the path, and
// `limits` may be NULL.
enum err recording_open_fd(int fd,
                           const char *name,
                           const struct recording_limits *limits,
                           struct recording *out,
                           struct recording_open_result *result,
                           struct err_info *info) MUST_USE;

enum err recording_open_bytes(struct bytes file,
                              const char *name,
                              const struct recording_limits *limits,
                              struct recording *out,
                              struct recording_open_result *result,
                              struct err_info *info) MUST_USE;
