// SPDX-License-Identifier: MIT
// unpacked: the content of a foreign file, front to back, unpacked by gzip or zstd if it is packed.
//
//   unpacked_open -> unpacked_peek (to recognize it) -> unpacked_line ... or unpacked_all
//
// It holds one window of content of any length. So a small file causes an allocation of at most one
// line (LINE_MAX_BYTES), or of the limit given to unpacked_all. Several gzip members or zstd frames
// in sequence are one content. A truncated packed file is not an error: the content ends there and
// `is_cut` is set, as for a killed run. Contradictory packed data is ERR_CORRUPT with its offset.
// Context: H; one thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/os/progress.h"
#include "host/text/strbuf.h"

struct unpacker; // state of the decompressor

struct unpacked {
    const char *path;          // borrowed; names the file in errors
    const char *phrase;        // borrowed; for progress, may be NULL
    struct progress *progress; // borrowed, may be NULL
    uint64_t file_bytes;
    uint64_t line_number; // number of the last line read, from 1
    uint64_t offset;      // offset of data[begin] in the content
    bool is_cut;          // the packed data ended early, or the last line has no end
    bool is_line_cut;     // the last line read has no end

    struct unpacker *unpacker; // owned
    char *data;                // owned; the window, with room for a line feed after it
    size_t cap;
    size_t begin; // start of unconsumed data
    size_t end;
    bool is_ended; // the content ends with the window
};

// Open a descriptor at its beginning, which the caller keeps. `u` must be zeroed. Sets everything
// but `phrase` and `progress`. ERR_NO_MEMORY.
enum err unpacked_open_fd(struct unpacked *u,
                          int fd,
                          uint64_t file_bytes,
                          const char *path,
                          struct err_info *info) MUST_USE;
void unpacked_release(struct unpacked *u); // accepts a zeroed one

// Return the next `want` bytes, or all if fewer are left, without consuming them. Borrowed until
// the next call.
enum err unpacked_peek(struct unpacked *u, size_t want, struct bytes *out, struct err_info *info)
    MUST_USE;

// Append the rest of the content to `out`; ERR_LIMIT if it is more than max_bytes.
enum err
unpacked_all(struct unpacked *u, uint64_t max_bytes, struct strbuf *out, struct err_info *info)
    MUST_USE;

// Complete unpacked_line when the window holds no whole line.
enum err unpacked_line_further(struct unpacked *u, struct bytes *out, struct err_info *info)
    MUST_USE;

// Read the next line without its line feed. ERR_NOT_FOUND without a sentence at the end. data[len]
// is a line feed, even if the last line of the file has none; is_cut is set then. Borrowed until
// the next call.
static inline MUST_USE enum err
unpacked_line(struct unpacked *u, struct bytes *out, struct err_info *info)
{
    const char *start = u->data + u->begin;
    const char *stop = memchr(start, '\n', u->end - u->begin);
    if (UNLIKELY(stop == NULL)) {
        return unpacked_line_further(u, out, info);
    }
    size_t len = (size_t)(stop - start);
    *out = (struct bytes){.data = (const uint8_t *)start, .len = len};
    u->begin += len + 1;
    u->offset += len + 1;
    u->line_number++;
    return ERR_OK;
}
