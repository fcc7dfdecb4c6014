// SPDX-License-Identifier: MIT
#include "formats/import/unpacked.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define ZLIB_CONST // next_in is const
#include <zlib.h>
#include <zstd.h>

#include "base/minmax.h"

enum {
    INPUT_BYTES = 64 << 10,
    WINDOW_BYTES = 256 << 10,
    LINE_MAX_BYTES = 16 << 20,
    GZIP_WINDOW = 15 + 16, // selects zlib's gzip format
};

enum packing {
    PACKING_UNKNOWN, // not examined yet
    PACKING_NONE,
    PACKING_GZIP,
    PACKING_ZSTD,
};

struct unpacker {
    int fd;            // borrowed
    struct bytes rest; // read but not unpacked
    uint64_t read_bytes;
    bool is_exhausted; // the file has no further bytes
    enum packing packing;
    bool is_within; // inside a gzip member or zstd frame
    z_stream z;     // owned if has_z
    bool has_z;
    ZSTD_DStream *zstd; // owned
    uint8_t input[INPUT_BYTES];
};

enum err unpacked_open_fd(
    struct unpacked *u, int fd, uint64_t file_bytes, const char *path, struct err_info *info)
{
    u->path = path;
    u->unpacker = calloc(1, sizeof(*u->unpacker));
    u->data = malloc(WINDOW_BYTES + 1);
    u->cap = WINDOW_BYTES;
    if (u->unpacker == NULL || u->data == NULL) {
        unpacked_release(u);
        return err_set(info, ERR_NO_MEMORY, "no memory to read '%s'", path);
    }
    u->unpacker->fd = fd;
    u->file_bytes = file_bytes;
    return ERR_OK;
}

void unpacked_release(struct unpacked *u)
{
    if (u->unpacker != NULL) {
        if (u->unpacker->has_z) {
            (void)inflateEnd(&u->unpacker->z); // reports only unread output
        }
        (void)ZSTD_freeDStream(u->unpacker->zstd); // always 0
    }
    free(u->unpacker);
    free(u->data);
    *u = (struct unpacked){0};
}

// Read into `rest` if it is empty, unless the file has ended.
static MUST_USE enum err read_more(struct unpacked *u, struct err_info *info)
{
    struct unpacker *p = u->unpacker;
    while (p->rest.len == 0 && !p->is_exhausted) {
        ssize_t got = read(p->fd, p->input, sizeof(p->input));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return err_set_errno(info, errno, "cannot read '%s'", u->path);
        }
        p->is_exhausted = got == 0;
        p->rest = (struct bytes){.data = p->input, .len = (size_t)got};
        p->read_bytes += (uint64_t)got;
        if (u->progress != NULL && u->phrase != NULL) {
            progress_update(u->progress, u->phrase, p->read_bytes, u->file_bytes);
        }
    }
    return ERR_OK;
}

static MUST_USE enum err refuse_packed(const struct unpacked *u, struct err_info *info)
{
    const struct unpacker *p = u->unpacker;
    uint64_t offset = p->read_bytes - p->rest.len;
    return err_set(info, ERR_CORRUPT,
                   "'%s' is damaged: its %s data make no sense at offset %" PRIu64, u->path,
                   p->packing == PACKING_GZIP ? "gzip" : "zstd", offset);
}

static MUST_USE enum err find_packing(struct unpacked *u, struct err_info *info)
{
    struct unpacker *p = u->unpacker;
    p->packing = PACKING_NONE;
    if (p->rest.len >= 2 && memcmp(p->rest.data, "\x1f\x8b", 2) == 0) {
        p->packing = PACKING_GZIP;
        p->has_z = inflateInit2(&p->z, GZIP_WINDOW) == Z_OK;
    } else if (p->rest.len >= 4 && memcmp(p->rest.data, "\x28\xb5\x2f\xfd", 4) == 0) {
        p->packing = PACKING_ZSTD;
        p->zstd = ZSTD_createDStream();
    }
    if ((p->packing == PACKING_GZIP && !p->has_z) ||
        (p->packing == PACKING_ZSTD && p->zstd == NULL)) {
        return err_set(info, ERR_NO_MEMORY, "no memory to unpack '%s'", u->path);
    }
    p->is_within = p->packing != PACKING_NONE;
    return ERR_OK;
}

// Each function takes from `rest` and writes to the window after `end`, at least one byte in total.
static MUST_USE enum err fill_plain(struct unpacked *u)
{
    struct unpacker *p = u->unpacker;
    size_t room = u->cap - u->end;
    size_t part = min_u64(p->rest.len, room);
    memcpy(u->data + u->end, p->rest.data, part);
    u->end += part;
    p->rest.data += part;
    p->rest.len -= part;
    return ERR_OK;
}

static MUST_USE enum err fill_gzip(struct unpacked *u, struct err_info *info)
{
    struct unpacker *p = u->unpacker;
    if (!p->is_within) {           // the next member
        (void)inflateReset(&p->z); // its state is valid
    }
    size_t given = min_u64(p->rest.len, INPUT_BYTES); // zlib counts in 32 bits
    p->z.next_in = p->rest.data;
    p->z.avail_in = (uInt)given;
    p->z.next_out = (Bytef *)u->data + u->end;
    p->z.avail_out = (uInt)(u->cap - u->end);
    int state = inflate(&p->z, Z_NO_FLUSH);
    u->end = u->cap - p->z.avail_out;
    p->rest.data += given - p->z.avail_in;
    p->rest.len -= given - p->z.avail_in;
    if (state != Z_OK && state != Z_STREAM_END) {
        return refuse_packed(u, info);
    }
    p->is_within = state != Z_STREAM_END;
    return ERR_OK;
}

static MUST_USE enum err fill_zstd(struct unpacked *u, struct err_info *info)
{
    struct unpacker *p = u->unpacker;
    ZSTD_inBuffer in = {.src = p->rest.data, .size = p->rest.len};
    ZSTD_outBuffer out = {.dst = u->data, .size = u->cap, .pos = u->end};
    size_t left = ZSTD_decompressStream(p->zstd, &out, &in);
    bool is_stuck = in.pos == 0 && out.pos == u->end;
    u->end = out.pos;
    p->rest.data += in.pos;
    p->rest.len -= in.pos;
    if (ZSTD_isError(left) || is_stuck) {
        return refuse_packed(u, info);
    }
    p->is_within = left != 0;
    return ERR_OK;
}

// Write the rest. zstd may hold back up to a block although it has taken all of its input.
static MUST_USE enum err flush_zstd(struct unpacked *u, struct err_info *info)
{
    size_t before = u->end;
    ZSTD_inBuffer in = {.src = "", .size = 0};
    ZSTD_outBuffer out = {.dst = u->data, .size = u->cap, .pos = u->end};
    if (ZSTD_isError(ZSTD_decompressStream(u->unpacker->zstd, &out, &in))) {
        return refuse_packed(u, info);
    }
    u->end = out.pos;
    u->is_ended = u->end == before;
    u->is_cut = u->is_ended;
    return ERR_OK;
}

// Append to the window, which must have room, or find the end.
static MUST_USE enum err fill_buffer(struct unpacked *u, struct err_info *info)
{
    struct unpacker *p = u->unpacker;
    size_t before = u->end;
    while (u->end == before && !u->is_ended) {
        TRY(read_more(u, info));
        if (p->packing == PACKING_UNKNOWN) {
            TRY(find_packing(u, info));
        }
        if (p->rest.len == 0 && p->is_within && p->packing == PACKING_ZSTD) {
            TRY(flush_zstd(u, info));
        } else if (p->rest.len == 0) {
            u->is_ended = true;
            u->is_cut = p->is_within;
        } else {
            TRY(p->packing == PACKING_GZIP   ? fill_gzip(u, info)
                : p->packing == PACKING_ZSTD ? fill_zstd(u, info)
                                             : fill_plain(u));
        }
    }
    return ERR_OK;
}

// Make room after the window: move its unconsumed part to the front, or enlarge it.
static MUST_USE enum err make_room(struct unpacked *u, size_t max_bytes, struct err_info *info)
{
    if (u->begin > 0) {
        memmove(u->data, u->data + u->begin, u->end - u->begin);
        u->end -= u->begin;
        u->begin = 0;
    }
    if (u->end < u->cap) {
        return ERR_OK;
    }
    if (u->cap >= max_bytes) {
        return err_set(info, ERR_LIMIT, "'%s', line %" PRIu64 ": longer than %d MiB", u->path,
                       u->line_number + 1, LINE_MAX_BYTES >> 20);
    }
    char *grown = realloc(u->data, u->cap * 2 + 1);
    if (grown == NULL) {
        return err_set(info, ERR_NO_MEMORY, "no memory to read '%s'", u->path);
    }
    u->data = grown;
    u->cap *= 2;
    return ERR_OK;
}

enum err unpacked_peek(struct unpacked *u, size_t want, struct bytes *out, struct err_info *info)
{
    while (u->end - u->begin < want && !u->is_ended) {
        TRY(make_room(u, LINE_MAX_BYTES, info));
        TRY(fill_buffer(u, info));
    }
    size_t there = u->end - u->begin;
    *out = (struct bytes){.data = (const uint8_t *)u->data + u->begin,
                          .len = there < want ? there : want};
    return ERR_OK;
}

enum err
unpacked_all(struct unpacked *u, uint64_t max_bytes, struct strbuf *out, struct err_info *info)
{
    while (u->end > u->begin || !u->is_ended) {
        size_t part = u->end - u->begin;
        if (out->len + part > max_bytes) {
            return err_set(info, ERR_LIMIT,
                           "'%s' unpacks to more than the %" PRIu64
                           " MiB that a file of its size and kind may",
                           u->path, max_bytes >> 20);
        }
        strbuf_append(out, u->data + u->begin, part);
        u->offset += part;
        u->begin = 0;
        u->end = 0;
        TRY(fill_buffer(u, info));
    }
    return out->failed ? err_set(info, ERR_NO_MEMORY, "no memory to read '%s'", u->path) : ERR_OK;
}

enum err unpacked_line_further(struct unpacked *u, struct bytes *out, struct err_info *info)
{
    size_t searched = u->end - u->begin;
    for (;;) {
        if (u->is_ended && searched == 0) {
            return ERR_NOT_FOUND;
        }
        if (u->is_ended) {
            u->data[u->end] = '\n'; // there is room behind the window
            u->is_cut = true;
            u->is_line_cut = true;
            *out = (struct bytes){.data = (const uint8_t *)u->data + u->begin, .len = searched};
            u->begin = u->end;
            u->offset += searched;
            u->line_number++;
            return ERR_OK;
        }
        TRY(make_room(u, LINE_MAX_BYTES, info));
        TRY(fill_buffer(u, info));
        if (memchr(u->data + u->begin + searched, '\n', u->end - u->begin - searched) != NULL) {
            return unpacked_line(u, out, info);
        }
        searched = u->end - u->begin;
    }
}
