// SPDX-License-Identifier: MIT
// chunk_source: the bytes of a recording file, and the payload of one of its chunks.
//
// A source is an open file, and never a mapping, so truncating the file during
// a read gives an error and not a SIGBUS. Reading a payload checks its hash and decompresses it.
// CHUNK_MAX_RAW_BYTES and the real size of the source bound the memory for it.
// Context: H; one thread at a time.
#pragma once

#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/text/strbuf.h"
#include "recording/format/chunk.h"

struct chunk_source {
    int fd;           // borrowed
    uint64_t bytes;   // size of the whole source
    const char *path; // borrowed; names it in errors
};

// Read exactly `len` bytes at `offset`. ERR_TRUNCATED if the source has fewer, ERR_IO.
enum err chunk_source_read(const struct chunk_source *source,
                           uint64_t offset,
                           void *out,
                           size_t len,
                           struct err_info *info) MUST_USE;

struct ZSTD_DCtx_s;

// Buffers for unpacking payloads, reused for each payload. Zeroed is valid.
struct chunk_payload {
    struct strbuf stored;
    struct strbuf raw;
    struct ZSTD_DCtx_s *zstd; // owned; made at first use
};

void chunk_payload_release(struct chunk_payload *payload);

// Check only the hash, in bounded memory, of a payload of any size. ERR_CORRUPT if it is wrong.
enum err chunk_payload_check(const struct chunk_source *source,
                             const struct chunk_place *place,
                             struct chunk_payload *payload,
                             struct err_info *info) MUST_USE;

// Set `out` to the raw payload, borrowed from `payload` until the next read. ERR_CORRUPT if the
// hash, the zstd frame or a length is wrong; ERR_LIMIT if the payload is larger than
// CHUNK_MAX_RAW_BYTES; ERR_UNSUPPORTED for flags of a later version; ERR_IO, ERR_TRUNCATED,
// ERR_NO_MEMORY.
enum err chunk_payload_read(const struct chunk_source *source,
                            const struct chunk_place *place,
                            struct chunk_payload *payload,
                            struct bytes *out,
                            struct err_info *info) MUST_USE;
