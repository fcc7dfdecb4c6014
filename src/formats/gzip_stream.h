// SPDX-License-Identifier: MIT
// gzip_stream: a stream that compresses what it is given.
//
// Context: H; one thread at a time. A failing stream keeps its own error flag.
#pragma once

#include <stdio.h>
#define ZLIB_CONST // what is compressed is only read
#include <zlib.h>

#include "base/bytes.h"
#include "base/err.h"

struct gzip_stream {
    FILE *out;  // borrowed
    z_stream z; // owned, if out is not NULL
};

// ERR_NO_MEMORY. A zeroed gzip_stream can be released.
enum err gzip_stream_init(struct gzip_stream *gzip, FILE *out) MUST_USE;
void gzip_stream_write(struct gzip_stream *gzip, struct bytes data);

// Writes what is left and the trailer.
void gzip_stream_finish(struct gzip_stream *gzip);
void gzip_stream_release(struct gzip_stream *gzip);
