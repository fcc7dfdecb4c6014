// SPDX-License-Identifier: MIT
// recording_writer: a recording to a file, as docs/format/recording.md says.
//
// Two ways:
//   recording_write            one snapshot, into a new file that replaces the old one in one step
//   struct recording_writer    appends snapshots and other chunks to an open file: for event logs
//                              and for checkpoints that must not touch what is already there
//
// The recording is borrowed and not changed. Its indices need not be valid (the reader checks
// them), but its arrays must hold what its counts say. Memory: a few MiB for the group under way.
// If a write fails (disk full), the file is cut back to the last whole chunk and the writer may be
// asked again later. Context: H; one thread at a time; cancellation is the progress function's
// false.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/text/strbuf.h"
#include "recording/format/chunk.h"
#include "recording/format/chunk_source.h"
#include "recording/format/table_supply.h"
#include "recording/format/tables.h"
#include "recording/write/chunk_packer.h"
#include "recording/write/group_encoder.h"

struct recording_write_options {
    int level;                         // of zstd; 0: the default
    bool is_plain;                     // no compression: for examples and tests
    bool is_durable;                   // recording_write only: on the disk before the rename
    mode_t mode;                       // recording_write only: permissions; 0: the owner's alone
    uint32_t group_count;              // entries in a chunk; 0: GROUP_MAX_ENTRIES
    uint32_t packing_threads;          // they encode and compress chunks; 0: there are none
    uint32_t generation;               // recording_write only: number of the snapshot; 0: 1
    const struct table_supply *supply; // of tables that the recording lacks; NULL: there are none
    // May be NULL. Called after each chunk with entries written so far and in all; false stops the
    // writing with ERR_CANCELLED.
    bool (*progress)(void *context, uint64_t done, uint64_t total);
    void *progress_context;
};

struct recording_writer {
    int fd;           // borrowed
    const char *path; // borrowed; names the file in errors
    struct recording_write_options options;
    uint64_t end; // of what was written whole
    uint32_t generation;
    uint32_t part;
    uint64_t entries_done;
    uint64_t entries_total;
    struct chunk_vec contents;
    struct strbuf raw; // the payload under way
    struct chunk_packer packer;
    struct group_encoder encoder; // of strings
    struct strbuf supplied;       // entries of the group under way, if the supply made them
};

// Writes `recording` to `path`. What was there stays until the new file is whole; nothing
// half-written is left behind. Errors name the path: ERR_IO (disk full, read-only), ERR_PERMISSION,
// ERR_NOT_FOUND (no such folder), ERR_NO_MEMORY, ERR_CANCELLED, ERR_LIMIT (a string over 8 MiB, or
// a table of more than 2^32 - 1 entries).
enum err recording_write(const struct recording *recording,
                         const char *path,
                         const struct recording_write_options *options,
                         struct err_info *info) MUST_USE;

// Starts a file. `w` must stay where it is. `fd` must be open for writing, seekable and empty.
// `options` may be NULL. `fd` and `path` must outlive the writer.
enum err recording_writer_init(struct recording_writer *w,
                               int fd,
                               const char *path,
                               const struct recording_write_options *options,
                               struct err_info *info) MUST_USE;

// Appends a snapshot. Its generation is one more than the last one's. After a failure the snapshot
// is not in the file, or at worst without its end; readers then use the one before.
enum err recording_writer_snapshot(struct recording_writer *w,
                                   const struct recording *recording,
                                   struct err_info *info) MUST_USE;

// Appends a chunk that belongs to no snapshot. Compresses it if that makes it smaller.
enum err recording_writer_chunk(struct recording_writer *w,
                                uint32_t type,
                                struct bytes payload,
                                struct err_info *info) MUST_USE;

// Appends a chunk of another file as it lies there. ERR_TRUNCATED if it is not all there.
enum err recording_writer_copy(struct recording_writer *w,
                               const struct chunk_source *source,
                               const struct chunk_place *place,
                               struct err_info *info) MUST_USE;

// Appends entries of a table outside of snapshots, at most GROUP_MAX_ENTRIES, the first of which
// has number `first`.
enum err recording_writer_group(struct recording_writer *w,
                                const struct rec_table *table,
                                const void *entries,
                                uint64_t first,
                                size_t count,
                                struct err_info *info) MUST_USE;

// Appends table of contents and footer. Nothing may be appended afterwards.
enum err recording_writer_finish(struct recording_writer *w, struct err_info *info) MUST_USE;

// Accepts a zeroed writer. Does not close the descriptor.
void recording_writer_release(struct recording_writer *w);
