// SPDX-License-Identifier: MIT
// chunk_index: the offsets and heads of the whole chunks of a recording file.
//
// They come from the table of contents of a finished file, if its checksum is right. Otherwise the
// index walks the file from chunk to chunk. After a damaged head the walk searches byte by byte for
// the next head with a right checksum. It neither reads nor checks payloads. Time and memory are
// linear in the file size (at most 56 bytes of memory for 48 bytes of file).
// Invariant: the chunks are in file order and do not overlap. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "recording/format/chunk_source.h"

struct chunk_index {
    struct chunk_vec chunks;  // owned; without the table of contents
    bool is_from_contents;    // false: from walking the file
    bool has_footer;          // the file was finished and has its end
    bool is_contents_damaged; // the footer is there, but the table of contents is unusable
    bool is_cut;              // the file ends within a chunk or within the footer
    uint64_t cut_bytes;       // bytes present of that chunk
    uint64_t damaged_bytes;   // bytes elsewhere that belong to no whole chunk
    uint64_t damaged_offset;  // file offset of the first damaged byte
};

// Build the index. `out` must be zeroed or released. The caller must have checked the file header.
// With `ignores_contents` the index always walks the file, which finds damage that a reader of the
// table of contents may not meet. ERR_IO, ERR_NO_MEMORY.
enum err chunk_index_build(const struct chunk_source *source,
                           bool ignores_contents,
                           struct chunk_index *out,
                           struct err_info *info) MUST_USE;

void chunk_index_release(struct chunk_index *index);
