// SPDX-License-Identifier: MIT
// recording_reader: read a recording from a file in any state.
//
// It takes the last whole snapshot, or the rest of the longest one if none is whole. A table of a
// damaged snapshot ends where its first unreadable chunk begins. Invariants of the recording, for
// any file content (recording_repair.h): every index is in its table or REC_NONE, node 0 is the
// root, parents come before their children, bucket and slice numbers exist, cells, buckets and
// cohorts are sorted, strings are terminated. Memory safety relies on them. The sums of a damaged
// file may be wrong: recording_verify checks them. recording_limits bound memory and work. Context:
// H; one thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/os/progress.h"
#include "recording/format/tables.h"
#include "recording/read/damage_report.h"

struct recording_open_result {
    enum recording_condition condition;
    uint32_t generation; // of the snapshot that was read
    uint64_t file_bytes;
    uint64_t unknown_chunks; // skipped chunks of unknown types
    char missing[384];       // one sentence without a full stop; "" if nothing is missing
};

// Limits for what a file may demand, and how it is read. The tables in memory and the decompressed
// payloads may each take base_bytes + ratio * file size and what the entries need that the snapshot
// announces, but the tables at most most_bytes. If the announced entries need more than three
// quarters of that, the history of rows gets half of the budget and is omitted as a whole if that
// is not enough.
struct recording_limits {
    uint64_t base_bytes;
    uint64_t ratio;
    uint64_t most_bytes;       // 0: a share of the memory that this process may expect to get
    bool ignores_contents;     // walk the whole file even if it has a table of contents
    uint64_t lean_rows;        // if there are more rows, merge those of threads, and omit what
                               // belongs to rows: their history, sizes, lifetimes, reallocs and
                               // blocks; 0: never
    struct progress *progress; // borrowed; NULL: silent
};

extern const struct recording_limits recording_default_limits;

// Open a recording from a descriptor, which the caller keeps; `name` is the file's in errors, and
// `limits` may be NULL. `out` then owns its arrays (recording_release). A damaged file gives ERR_OK
// too; `result`, which may be NULL, describes the damage. Refusals, each with a sentence:
//   ERR_IO
//   ERR_INVALID       not a regular file, or not a recording
//   ERR_TRUNCATED     empty, or it ends before anything that can be shown
//   ERR_UNSUPPORTED   from a newer version
//   ERR_CORRUPT       damaged so that nothing can be shown
//   ERR_LIMIT         more than recording_limits allows; ERR_NO_MEMORY
enum err recording_open_fd(int fd,
                           const char *name,
                           const struct recording_limits *limits,
                           struct recording *out,
                           struct recording_open_result *result,
                           struct err_info *info) MUST_USE;
