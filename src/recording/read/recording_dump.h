// SPDX-License-Identifier: MIT
// recording_dump: every chunk of a file, good or bad, for people and for `verify`.
//
// It walks the whole file, regardless of the table of contents, and reads every payload.
// recording_open_fd reads the last snapshot only. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "recording/format/chunk.h"

struct dumped_chunk {
    uint64_t offset;
    struct chunk_head head;
    char type[5];
    const char *table;   // table in it: "rows", ...; "" if unknown
    uint64_t first;      // index of the first entry, for a chunk of a table
    uint32_t count;      // number of entries, for a chunk of a table
    enum err condition;  // ERR_OK: the payload is as it was written
    const char *problem; // what is wrong, "" if nothing; borrowed for the call
};

struct dump_summary {
    uint64_t file_bytes;
    uint16_t major;
    uint16_t minor;
    bool is_header_damaged;
    bool has_footer;
    bool has_contents; // the table of contents exists and agrees with the walk
    uint64_t chunk_count;
    uint64_t damaged_chunks;   // found but unreadable
    uint64_t unreadable_bytes; // bytes that belong to no whole chunk
    uint64_t unreadable_offset;
};

// Call `visit` for each chunk in file order; false stops with ERR_CANCELLED. Refuses files that
// recording_open_fd refuses as not a recording. Damage is not an error.
enum err recording_dump(const char *path,
                        bool (*visit)(void *context, const struct dumped_chunk *chunk),
                        void *context,
                        struct dump_summary *out,
                        struct err_info *info) MUST_USE;
