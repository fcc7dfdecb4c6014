// SPDX-License-Identifier: MIT
// packed_stream: a stream that compresses its input with gzip or zstd.
//
// Context: H; one thread at a time. A failing stream keeps its own error flag.
#pragma once

#include <stdio.h>
#define ZLIB_CONST // input is const
#include <zlib.h>
#include <zstd.h>

#include "base/bytes.h"
#include "base/err.h"

enum packing {
    PACKING_GZIP,
    PACKING_ZSTD,
};

struct packed_stream {
    FILE *out; // borrowed
    enum packing packing;
    z_stream z;      // owned, if out is not NULL and the packing is gzip
    ZSTD_CCtx *zstd; // owned, if out is not NULL and the packing is zstd
};

// Initialise. ERR_NO_MEMORY. A zeroed packed_stream can be released.
enum err packed_stream_init(struct packed_stream *stream, enum packing packing, FILE *out) MUST_USE;
void packed_stream_write(struct packed_stream *stream, struct bytes data);

// Write the rest and the trailer. ERR_NO_MEMORY if compression failed.
enum err packed_stream_finish(struct packed_stream *stream) MUST_USE;
void packed_stream_release(struct packed_stream *stream);
