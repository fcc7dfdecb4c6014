// SPDX-License-Identifier: MIT
// recording_dump: every chunk of a file, good or bad, for people and for `verify`.
//
// Walks the whole file, whatever its table of contents says, and reads every payload. Opening a
// recording looks at its last snapshot only; this looks at all of it. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "recording/format/chunk.h"

struct dumped_chunk {
    uint64_t offset;
    struct chunk_head head;
    char type[5];
    const char *table;   // what lies in it: "rows", ...; "" if that is not known
    uint64_t first;      // entry, of a table's chunk
    uint32_t count;      // of entries, of a table's chunk
    enum err condition;  // ERR_OK: the payload is as it was written
    const char *problem; // what is wrong with it, "" if nothing; borrowed for the call
};

struct dump_summary {
    uint64_t file_bytes;
    uint16_t major;
    uint16_t minor;
    bool is_header_damaged;
    bool has_footer;
    bool has_contents; // there is a table of contents, and it says what the walk found
    uint64_t chunk_count;
    uint64_t damaged_chunks;   // found, but not readable
    uint64_t unreadable_bytes; // that belong to no whole chunk
    uint64_t unreadable_offset;
};

// Calls `visit` for each chunk in the order of the file; false stops with ERR_CANCELLED. Refuses
// what recording_open refuses as not being a recording at all; damage is not an error.
enum err recording_dump(const char *path,
                        bool (*visit)(void *context, const struct dumped_chunk *chunk),
                        void *context,
                        struct dump_summary *out,
                        struct err_info *info) MUST_USE;
