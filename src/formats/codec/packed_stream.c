// SPDX-License-Identifier: MIT
// packed_stream: zlib or zstd in front of a stream. See packed_stream.h.
#include "formats/codec/packed_stream.h"

#include "base/minmax.h"

enum {
    WINDOW_BITS_GZIP = 15 + 16,
    MEMORY_LEVEL = 8,
    INPUT_MAX_BYTES = 1 << 30, // zlib counts in 32 bits
    OUTPUT_BYTES = 1 << 14,
};

enum err packed_stream_init(struct packed_stream *stream, enum packing packing, FILE *out)
{
    // Initialise in place: zlib's state points back at its z_stream.
    *stream = (struct packed_stream){.packing = packing};
    if (packing == PACKING_ZSTD) {
        stream->zstd = ZSTD_createCCtx();
        if (stream->zstd == NULL) {
            return ERR_NO_MEMORY;
        }
    } else if (deflateInit2(&stream->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS_GZIP,
                            MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
        return ERR_NO_MEMORY;
    }
    stream->out = out;
    return ERR_OK;
}

// Compress the input at z.next_in. With valid arguments deflate cannot fail.
static void deflate_part(struct packed_stream *stream, int flush)
{
    unsigned char buffer[OUTPUT_BYTES];
    do {
        stream->z.next_out = buffer;
        stream->z.avail_out = sizeof(buffer);
        (void)deflate(&stream->z, flush);
        (void)fwrite(buffer, 1, sizeof(buffer) - stream->z.avail_out, stream->out); // sets a flag
    } while (stream->z.avail_out == 0);
}

static void deflate_all(struct packed_stream *stream, struct bytes data)
{
    while (data.len > 0) {
        size_t part = min_u64(data.len, INPUT_MAX_BYTES);
        stream->z.next_in = data.data;
        stream->z.avail_in = (uInt)part;
        deflate_part(stream, Z_NO_FLUSH);
        data.data += part;
        data.len -= part;
    }
}

// If zstd lacks memory, it fails now and in all later calls; packed_stream_finish reports that.
static enum err compress_all(struct packed_stream *stream, struct bytes data, ZSTD_EndDirective end)
{
    unsigned char buffer[OUTPUT_BYTES];
    ZSTD_inBuffer in = {.src = data.data, .size = data.len};
    size_t left;
    do {
        ZSTD_outBuffer out = {.dst = buffer, .size = sizeof(buffer)};
        left = ZSTD_compressStream2(stream->zstd, &out, &in, end);
        if (ZSTD_isError(left)) {
            return ERR_NO_MEMORY;
        }
        (void)fwrite(buffer, 1, out.pos, stream->out); // `out` remembers a failure
    } while (in.pos < in.size || (end == ZSTD_e_end && left > 0));
    return ERR_OK;
}

void packed_stream_write(struct packed_stream *stream, struct bytes data)
{
    if (stream->packing == PACKING_ZSTD) {
        (void)compress_all(stream, data, ZSTD_e_continue); // packed_stream_finish reports a failure
    } else {
        deflate_all(stream, data);
    }
}

enum err packed_stream_finish(struct packed_stream *stream)
{
    if (stream->packing == PACKING_ZSTD) {
        return compress_all(stream, (struct bytes){0}, ZSTD_e_end);
    }
    deflate_part(stream, Z_FINISH);
    return ERR_OK;
}

void packed_stream_release(struct packed_stream *stream)
{
    if (stream->out != NULL && stream->packing == PACKING_GZIP) {
        (void)deflateEnd(&stream->z); // reports only unfinished output
    }
    (void)ZSTD_freeCCtx(stream->zstd); // accepts NULL
    stream->out = NULL;
    stream->zstd = NULL;
}
