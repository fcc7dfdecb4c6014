// SPDX-License-Identifier: MIT
// chunk_source: the bytes of a recording file, and the payload of one of its chunks.
//
// A file that is open, or bytes in memory; never a mapping: if somebody cuts the file while it is
// being read, that is an error and not a SIGBUS. A payload is read, checked against its hash and
// decompressed; what is asked of memory is bounded by CHUNK_MAX_RAW_BYTES and by what the source
// really holds. Context: H; one thread at a time.
#pragma once

#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/text/strbuf.h"
#include "recording/format/chunk.h"

struct chunk_source {
    int fd;              // borrowed; -1: the bytes are in memory
    struct bytes memory; // borrowed
    uint64_t bytes;      // of all there is
    const char *path;    // borrowed; names it in errors
};

// Reads exactly `len` bytes at `offset`. ERR_TRUNCATED if they are not there, ERR_IO.
enum err chunk_source_read(const struct chunk_source *source,
                           uint64_t offset,
                           void *out,
                           size_t len,
                           struct err_info *info) MUST_USE;

struct ZSTD_DCtx_s;

// The buffers in which payloads are unpacked, reused from one to the next. Zeroed is valid.
struct chunk_payload {
    struct strbuf stored;
    struct strbuf raw;
    struct ZSTD_DCtx_s *zstd; // owned; made when first needed
};

void chunk_payload_release(struct chunk_payload *payload);

// Only the hash, in bounded memory, for payloads of any size. ERR_CORRUPT if it is wrong.
enum err chunk_payload_check(const struct chunk_source *source,
                             const struct chunk_place *place,
                             struct chunk_payload *payload,
                             struct err_info *info) MUST_USE;

// Sets `out` to the raw payload, borrowed from `payload` until the next read. ERR_CORRUPT if hash,
// frame or lengths are wrong; ERR_LIMIT if it is larger than CHUNK_MAX_RAW_BYTES; ERR_UNSUPPORTED
// for flags from a later version; ERR_IO, ERR_TRUNCATED, ERR_NO_MEMORY.
enum err chunk_payload_read(const struct chunk_source *source,
                            const struct chunk_place *place,
                            struct chunk_payload *payload,
                            struct bytes *out,
                            struct err_info *info) MUST_USE;
