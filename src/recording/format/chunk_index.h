// SPDX-License-Identifier: MIT
// chunk_index: which whole chunks a recording file holds, and where.
//
// A finished file's table of contents says so, if its checksum is right. Otherwise the file is
// walked from chunk to chunk; where a head is damaged, the walk looks at every further byte for the
// next one whose checksum is right. Payloads are neither read nor checked here.
// The work is linear in the size of the file, and so is the memory (at most 56 bytes for each 48).
// Invariant: the chunks lie in the file in this order and do not overlap. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "recording/format/chunk_source.h"

struct chunk_index {
    struct chunk_vec chunks;  // owned; without the table of contents
    bool is_from_contents;    // not by walking
    bool has_footer;          // the file was finished, and its end is there
    bool is_contents_damaged; // there is an end, but the table of contents is of no use
    bool is_cut;              // it ends within a chunk, or within the footer
    uint64_t cut_bytes;       // of that chunk
    uint64_t damaged_bytes;   // that belong to no whole chunk, elsewhere
    uint64_t damaged_offset;  // of the first of them
};

// `out` must be zeroed or released. With `ignores_contents` the file is walked in any case, which
// finds damage that a reader of the table of contents need not meet. The file header must have been
// checked. ERR_IO, ERR_NO_MEMORY.
enum err chunk_index_build(const struct chunk_source *source,
                           bool ignores_contents,
                           struct chunk_index *out,
                           struct err_info *info) MUST_USE;

void chunk_index_release(struct chunk_index *index);
