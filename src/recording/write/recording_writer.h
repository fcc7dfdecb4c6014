// SPDX-License-Identifier: MIT
// recording_writer: write a recording to a file, as docs/format/recording.md specifies.
//
//   recording_write            writes one snapshot into a new file, which then replaces the old one
//   struct recording_writer    appends snapshots and other chunks to an open file: for checkpoints
//                              that must not touch what is already there
//
// The recording is borrowed and not changed. Its indices need not be valid (the reader checks
// them), but its arrays must have the sizes of its counts. Memory: a few MiB for the current group.
// If a write fails (disk full), the writer truncates the file to the last whole chunk and can be
// used again later. Context: H; one thread at a time; the progress function cancels by returning
// false.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/text/strbuf.h"
#include "recording/format/chunk.h"
#include "recording/format/chunk_source.h"
#include "recording/format/table_supply.h"
#include "recording/format/tables.h"
#include "recording/write/group_encoder.h"

struct ZSTD_CCtx_s;

struct recording_write_options {
    int level;                         // zstd level; 0: the default
    bool is_plain;                     // no compression: for examples and tests
    bool is_durable;                   // recording_write only: sync to disk before the rename
    mode_t mode;                       // recording_write only: permissions; 0: only for the owner
    uint32_t group_count;              // entries in a chunk; 0: GROUP_MAX_ENTRIES
    uint32_t generation;               // recording_write only: number of the snapshot; 0: 1
    const struct table_supply *supply; // tables that the recording lacks; NULL: none
    // May be NULL. Called after each chunk with the entries written so far and in total. Returning
    // false stops the writing with ERR_CANCELLED.
    bool (*progress)(void *context, uint64_t done, uint64_t total);
    void *progress_context;
};

struct recording_writer {
    int fd;           // borrowed
    const char *path; // borrowed; names the file in errors
    struct recording_write_options options;
    uint64_t end; // offset after the last whole chunk
    uint32_t generation;
    uint32_t part;
    uint64_t entries_done;
    uint64_t entries_total;
    struct chunk_vec contents;
    struct group_encoder encoder;
    struct strbuf supplied;   // entries of the current group, if the supply made them
    struct strbuf raw;        // current payload
    struct strbuf stored;     // head and payload as written
    struct ZSTD_CCtx_s *zstd; // owned; NULL: no compression
};

// Write `recording` to `path`. The old file stays until the new one is complete, and no
// half-written file remains. Errors name the path: ERR_IO (disk full, read-only), ERR_PERMISSION,
// ERR_NOT_FOUND (no such folder), ERR_NO_MEMORY, ERR_CANCELLED, ERR_LIMIT (a string over 8 MiB, or
// a table of more than 2^32 - 1 entries).
enum err recording_write(const struct recording *recording,
                         const char *path,
                         const struct recording_write_options *options,
                         struct err_info *info) MUST_USE;

// Start a file. `fd` must be open for writing, seekable and empty. `options` may
// be NULL. `fd` and `path` must outlive the writer.
enum err recording_writer_init(struct recording_writer *w,
                               int fd,
                               const char *path,
                               const struct recording_write_options *options,
                               struct err_info *info) MUST_USE;

// Append a snapshot. Its generation is one more than the last one's. After a failure the file has
// no part of the snapshot, or the snapshot without its end; readers then use the one before.
enum err recording_writer_snapshot(struct recording_writer *w,
                                   const struct recording *recording,
                                   struct err_info *info) MUST_USE;

// Append a chunk of another file unchanged. ERR_TRUNCATED if the source lacks a part of it.
enum err recording_writer_copy(struct recording_writer *w,
                               const struct chunk_source *source,
                               const struct chunk_place *place,
                               struct err_info *info) MUST_USE;

// Append table of contents and footer. Nothing may be appended afterwards.
enum err recording_writer_finish(struct recording_writer *w, struct err_info *info) MUST_USE;

// Accepts a zeroed writer. Does not close the descriptor.
void recording_writer_release(struct recording_writer *w);

// Replace the snapshot of a finished file in one step. The new file has the old file's chunks
// outside of snapshots (an event log of 1.0.0), unchanged, and the new snapshot. The old file stays
// until
// the new one is complete. The new file keeps the mode, and the owner if permitted.
// Write `recording` in place of the snapshot with number `generation`. Fails as recording_write
// does, with ERR_CORRUPT for a chunk that cannot be copied, and with ERR_TRUNCATED for a file
// without an end.
enum err recording_rewrite(const char *path,
                           const struct recording *recording,
                           uint32_t generation,
                           struct err_info *info) MUST_USE;
