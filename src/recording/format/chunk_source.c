// SPDX-License-Identifier: MIT
#include "recording/format/chunk_source.h"

#include <errno.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>

enum {
    CHECK_BYTES = 64 << 10
}; // hashed in one step

enum err chunk_source_read(const struct chunk_source *source,
                           uint64_t offset,
                           void *out,
                           size_t len,
                           struct err_info *info)
{
    if (offset > source->bytes || len > source->bytes - offset) {
        return err_set(info, ERR_TRUNCATED, "'%s' ends too early", source->path);
    }
    for (size_t done = 0; done < len;) {
        ssize_t got = pread(source->fd, (char *)out + done, len - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return err_set_errno(info, errno, "cannot read '%s'", source->path);
        }
        if (got == 0) {
            return err_set(info, ERR_TRUNCATED, "'%s' was cut while it was read", source->path);
        }
        done += (size_t)got;
    }
    return ERR_OK;
}

void chunk_payload_release(struct chunk_payload *payload)
{
    strbuf_release(&payload->stored);
    strbuf_release(&payload->raw);
    (void)ZSTD_freeDCtx(payload->zstd); // accepts NULL
    payload->zstd = NULL;
}

static enum err fail_as_damaged(const struct chunk_source *source,
                                const struct chunk_place *place,
                                const char *how,
                                struct err_info *info)
{
    char type[5];
    chunk_type_text(place->head.type, type);
    return err_set(info, ERR_CORRUPT, "'%s': the %s chunk at %llu %s", source->path, type,
                   (unsigned long long)place->offset, how);
}

enum err chunk_payload_check(const struct chunk_source *source,
                             const struct chunk_place *place,
                             struct chunk_payload *payload,
                             struct err_info *info)
{
    XXH64_state_t state;
    (void)XXH64_reset(&state, 0); // fails for NULL only
    strbuf_clear(&payload->stored);
    if (!strbuf_reserve(&payload->stored, CHECK_BYTES)) {
        return err_set(info, ERR_NO_MEMORY, "no memory to read '%s'", source->path);
    }
    for (uint64_t done = 0; done < place->head.stored_bytes;) {
        uint64_t left = place->head.stored_bytes - done;
        size_t len = left < CHECK_BYTES ? (size_t)left : CHECK_BYTES;
        TRY(chunk_source_read(source, place->offset + CHUNK_HEAD_BYTES + done, payload->stored.data,
                              len, info));
        (void)XXH64_update(&state, payload->stored.data, len);
        done += len;
    }
    if (XXH64_digest(&state) != place->head.payload_hash) {
        return fail_as_damaged(source, place, "has a wrong checksum", info);
    }
    return ERR_OK;
}

// Decompress. A frame must state its content size, agree with the head, and fill the stored
// payload.
static bool unpack_chunk(struct chunk_payload *payload, const struct chunk_head *head)
{
    const char *stored = payload->stored.data;
    size_t len = payload->stored.len;
    if (ZSTD_getFrameContentSize(stored, len) != head->raw_bytes ||
        ZSTD_findFrameCompressedSize(stored, len) != len) {
        return false;
    }
    payload->raw.len = head->raw_bytes;
    return ZSTD_decompressDCtx(payload->zstd, payload->raw.data, head->raw_bytes, stored, len) ==
           head->raw_bytes;
}

// Make room for the payload, and the decompressor if needed.
static bool prepare_payload(struct chunk_payload *payload, const struct chunk_head *head)
{
    strbuf_clear(&payload->stored);
    strbuf_clear(&payload->raw);
    if ((head->flags & CHUNK_ZSTD) != 0) {
        payload->zstd = payload->zstd != NULL ? payload->zstd : ZSTD_createDCtx();
        if (payload->zstd == NULL || !strbuf_reserve(&payload->raw, head->raw_bytes)) {
            return false;
        }
    }
    return strbuf_reserve(&payload->stored, head->stored_bytes);
}

enum err chunk_payload_read(const struct chunk_source *source,
                            const struct chunk_place *place,
                            struct chunk_payload *payload,
                            struct bytes *out,
                            struct err_info *info)
{
    const struct chunk_head *head = &place->head;
    bool is_packed = (head->flags & CHUNK_ZSTD) != 0;
    if ((head->flags & FLAGS_REQUIRED & ~(uint32_t)CHUNK_ZSTD) != 0) {
        return err_set(info, ERR_UNSUPPORTED, "'%s' holds a chunk that needs a newer version",
                       source->path);
    }
    if (head->raw_bytes > CHUNK_MAX_RAW_BYTES) {
        return err_set(info, ERR_LIMIT, "'%s' holds a chunk of %llu bytes", source->path,
                       (unsigned long long)head->raw_bytes);
    }
    if (is_packed ? head->stored_bytes >= head->raw_bytes : head->stored_bytes != head->raw_bytes) {
        return fail_as_damaged(source, place, "has lengths that contradict each other", info);
    }
    if (!prepare_payload(payload, head)) {
        return err_set(info, ERR_NO_MEMORY, "no memory to read '%s'", source->path);
    }
    TRY(chunk_source_read(source, place->offset + CHUNK_HEAD_BYTES, payload->stored.data,
                          head->stored_bytes, info));
    payload->stored.len = head->stored_bytes;
    if (chunk_hash(payload->stored.data, head->stored_bytes) != head->payload_hash) {
        return fail_as_damaged(source, place, "has a wrong checksum", info);
    }
    if (is_packed && !unpack_chunk(payload, head)) {
        return fail_as_damaged(source, place, "cannot be decompressed", info);
    }
    *out = strbuf_bytes(is_packed ? &payload->raw : &payload->stored);
    return ERR_OK;
}
