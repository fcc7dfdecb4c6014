// SPDX-License-Identifier: MIT
#include "server/http/encoding.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "base/hex.h"
#include "base/minmax.h"

#define XXH_INLINE_ALL
#include <xxhash.h>
#define ZLIB_CONST
#include <zlib.h>

enum {
    GZIP_WINDOW = 15 + 16, // zlib's flag for a gzip header
    GZIP_MEMORY = 8,
    STEP_BYTES = 256 * 1024,
};

uint64_t content_hash(const void *data, size_t len)
{
    return XXH3_64bits(data, len);
}

struct etag etag_of(uint64_t hash)
{
    struct etag tag;
    (void)snprintf(tag.text, sizeof(tag.text), "W/\"%016" PRIx64 "\"", hash); // fits
    return tag;
}

bool etag_is_in(const struct etag *tag, const char *if_none_match)
{
    if (if_none_match == NULL) {
        return false;
    }
    // Tags are compared weakly: "x" equals W/"x".
    const char *opaque = tag->text + 2;
    const char *found = strstr(if_none_match, opaque);
    return found != NULL || strcmp(if_none_match, "*") == 0;
}

// Whether a weight of 0, as in "gzip;q=0", forbids the coding at `item`.
static bool is_forbidden(const char *item, size_t len)
{
    const char *quality = memchr(item, ';', len);
    if (quality == NULL) {
        return false;
    }
    quality += 1 + strspn(quality + 1, " \t");
    return strncasecmp(quality, "q=0", 3) == 0 &&
           strcspn(quality + 3, "123456789") >= strcspn(quality + 3, ",");
}

bool accepts_gzip(const char *accept_encoding)
{
    const char *at = accept_encoding != NULL ? accept_encoding : "";
    while (*at != '\0') {
        at += strspn(at, " \t,");
        size_t len = strcspn(at, ",");
        size_t name = strcspn(at, ",; \t");
        bool is_gzip = (name == 4 && strncasecmp(at, "gzip", 4) == 0) || (name == 1 && *at == '*');
        if (is_gzip) {
            return !is_forbidden(at, len);
        }
        at += len;
    }
    return false;
}

static void end_deflate(z_stream *stream)
{
    (void)deflateEnd(stream); // frees; its error for an unfinished stream does not matter
}

static void end_inflate(z_stream *stream)
{
    (void)inflateEnd(stream); // frees; its error does not matter
}

enum err gzip_compress(struct bytes plain, enum gzip_effort effort, struct strbuf *out)
{
    CLEANUP(end_deflate) z_stream stream = {0};
    if (deflateInit2(&stream, (int)effort, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        return ERR_NO_MEMORY;
    }
    int state = Z_OK;
    while (state != Z_STREAM_END) {
        if (stream.avail_in == 0) {
            stream.next_in = plain.data;
            stream.avail_in = (uInt)min_u64(plain.len, UINT_MAX);
            plain.data += stream.avail_in;
            plain.len -= stream.avail_in;
        }
        if (!strbuf_reserve(out, STEP_BYTES)) {
            return ERR_NO_MEMORY;
        }
        stream.next_out = (Bytef *)out->data + out->len;
        stream.avail_out = STEP_BYTES;
        state = deflate(&stream, plain.len == 0 ? Z_FINISH : Z_NO_FLUSH);
        out->len += STEP_BYTES - stream.avail_out;
    }
    out->data[out->len] = '\0';
    return ERR_OK;
}

enum err gzip_expand(struct bytes packed, struct strbuf *out)
{
    CLEANUP(end_inflate) z_stream stream = {0};
    if (packed.len > UINT_MAX || inflateInit2(&stream, GZIP_WINDOW) != Z_OK) {
        return ERR_NO_MEMORY;
    }
    stream.next_in = packed.data;
    stream.avail_in = (uInt)packed.len;
    int state = Z_OK;
    while (state == Z_OK) {
        if (!strbuf_reserve(out, STEP_BYTES)) {
            return ERR_NO_MEMORY;
        }
        stream.next_out = (Bytef *)out->data + out->len;
        stream.avail_out = STEP_BYTES;
        state = inflate(&stream, Z_NO_FLUSH);
        out->len += STEP_BYTES - stream.avail_out;
    }
    out->data[out->len] = '\0';
    return state == Z_STREAM_END ? ERR_OK : ERR_CORRUPT;
}

enum {
    HEX_MAX_BYTES = 64
};

void base64_append(struct strbuf *out, struct bytes data)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < data.len; i += 3) {
        size_t left = data.len - i;
        uint32_t group = (uint32_t)data.data[i] << 16 |
                         (left > 1 ? (uint32_t)data.data[i + 1] << 8 : 0) |
                         (left > 2 ? data.data[i + 2] : 0);
        char text[4] = {digits[group >> 18], digits[group >> 12 & 63], digits[group >> 6 & 63],
                        digits[group & 63]};
        for (size_t missing = 4; missing > left + 1; missing--) {
            text[missing - 1] = '=';
        }
        strbuf_append(out, text, sizeof(text));
    }
}

void base64_append_hex(struct strbuf *out, const char *hex)
{
    uint8_t bytes[HEX_MAX_BYTES];
    base64_append(out, hex_parse(hex, bytes, sizeof(bytes)));
}
