// SPDX-License-Identifier: MIT
// unpacked: the content of a foreign file, front to back, whether packed by gzip, zstd or not at
// all.
//
//   unpacked_open -> unpacked_peek (to see what it is) -> unpacked_line ... or unpacked_all
//
// Holds one window of the content, however long that is: what a small file can make us allocate is
// one line (LINE_MAX_BYTES), or what the caller of unpacked_all allows. Several gzip members or
// zstd frames one after the other are one content. A packed file that stops early is no error: the
// content ends there and `is_cut` says so, as for a run that was killed. Packed data that
// contradicts itself is ERR_CORRUPT with its offset. Context: H; one thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/os/progress.h"
#include "host/text/strbuf.h"

struct unpacker; // what takes apart the packing

struct unpacked {
    const char *path;          // borrowed; names the file in errors
    const char *phrase;        // borrowed; for progress, may be NULL
    struct progress *progress; // borrowed, may be NULL
    uint64_t file_bytes;
    uint64_t line_number; // of the line that was read last, from 1
    uint64_t offset;      // in the content, of data[begin]
    bool is_cut;          // the packing ended early, or the last line has no end
    bool is_line_cut;     // the line that was read last has no end

    struct unpacker *unpacker; // owned
    char *data;                // owned; the window, and room for a line feed behind it
    size_t cap;
    size_t begin; // of what is not consumed
    size_t end;
    bool is_ended; // nothing comes after the window
};

// From a descriptor at its beginning, which stays the caller's, or from bytes. `u` is zeroed. Sets
// up everything but `phrase` and `progress`. ERR_NO_MEMORY.
enum err unpacked_open_fd(struct unpacked *u,
                          int fd,
                          uint64_t file_bytes,
                          const char *path,
                          struct err_info *info) MUST_USE;
enum err
unpacked_open_bytes(struct unpacked *u, struct bytes file, const char *path, struct err_info *info)
    MUST_USE;
void unpacked_release(struct unpacked *u); // accepts a zeroed one

// The next `want` bytes, or all there are, without consuming them. Borrowed until the next call.
enum err unpacked_peek(struct unpacked *u, size_t want, struct bytes *out, struct err_info *info)
    MUST_USE;

// Appends all that is left to `out`; ERR_LIMIT if that is more than max_bytes.
enum err
unpacked_all(struct unpacked *u, uint64_t max_bytes, struct strbuf *out, struct err_info *info)
    MUST_USE;

// The rest of unpacked_line: the window holds no whole line.
enum err unpacked_line_further(struct unpacked *u, struct bytes *out, struct err_info *info)
    MUST_USE;

// The next line without its end; ERR_NOT_FOUND, and no words, if there is none. data[len] is a line
// feed also behind a last line that has none in the file, which then is_cut. Borrowed until the
// next call.
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

// A refusal that names the file and the line: "'x', line 12: ...".
enum err
unpacked_refuse_line(const struct unpacked *u, enum err err, struct err_info *info, const char *why)
    MUST_USE;
