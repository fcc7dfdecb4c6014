// SPDX-License-Identifier: MIT
// gzip_stream: zlib in front of a stream. See gzip_stream.h.
#include "formats/gzip_stream.h"

enum {
    WINDOW_BITS_GZIP = 15 + 16,
    MEMORY_LEVEL = 8,
    INPUT_MAX_BYTES = 1 << 30, // zlib counts in 32 bits
    OUTPUT_BYTES = 1 << 14,
};

enum err gzip_stream_init(struct gzip_stream *gzip, FILE *out)
{
    // In place: zlib's state points back at its z_stream.
    *gzip = (struct gzip_stream){0};
    if (deflateInit2(&gzip->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS_GZIP, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        return ERR_NO_MEMORY;
    }
    gzip->out = out;
    return ERR_OK;
}

// Compresses what z.next_in holds. With valid arguments deflate cannot fail, only be done.
static void drain(struct gzip_stream *gzip, int flush)
{
    unsigned char buffer[OUTPUT_BYTES];
    do {
        gzip->z.next_out = buffer;
        gzip->z.avail_out = sizeof(buffer);
        (void)deflate(&gzip->z, flush);
        (void)fwrite(buffer, 1, sizeof(buffer) - gzip->z.avail_out, gzip->out); // stream remembers
    } while (gzip->z.avail_out == 0);
}

void gzip_stream_write(struct gzip_stream *gzip, struct bytes data)
{
    while (data.len > 0) {
        size_t part = data.len < INPUT_MAX_BYTES ? data.len : INPUT_MAX_BYTES;
        gzip->z.next_in = data.data;
        gzip->z.avail_in = (uInt)part;
        drain(gzip, Z_NO_FLUSH);
        data.data += part;
        data.len -= part;
    }
}

void gzip_stream_finish(struct gzip_stream *gzip)
{
    drain(gzip, Z_FINISH);
}

void gzip_stream_release(struct gzip_stream *gzip)
{
    if (gzip->out != NULL) {
        (void)deflateEnd(&gzip->z); // says only whether there was something left
        gzip->out = NULL;
    }
}
