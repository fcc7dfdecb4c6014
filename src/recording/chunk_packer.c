// SPDX-License-Identifier: MIT
// chunk_packer: see the header.
#include "recording/chunk_packer.h"

#include <zstd.h>

enum {
    SHORT_BYTES = 16 << 10, // less is packed sooner than a worker is awake
};

// The payload as it is to be stored: zstd if that is smaller.
static enum err
store(const struct chunk_packer *packer, struct ZSTD_CCtx_s *zstd, struct packed_chunk *chunk)
{
    const struct bytes raw = strbuf_bytes(&chunk->raw);
    const size_t bound = ZSTD_compressBound(raw.len);
    strbuf_clear(&chunk->stored);
    if (!strbuf_reserve(&chunk->stored, CHUNK_HEAD_BYTES + bound)) {
        return err_set(&chunk->info, ERR_NO_MEMORY, "no memory for a chunk of %zu bytes", raw.len);
    }
    chunk->stored.len = CHUNK_HEAD_BYTES;
    chunk->head.flags = 0;
    if (!packer->is_plain) {
        char *payload = chunk->stored.data + CHUNK_HEAD_BYTES;
        const size_t packed = ZSTD_compress2(zstd, payload, bound, raw.data, raw.len);
        if (ZSTD_isError(packed)) {
            return err_set(&chunk->info, ERR_NO_MEMORY, "cannot compress: %s",
                           ZSTD_getErrorName(packed));
        }
        if (packed < raw.len) {
            chunk->head.flags = CHUNK_ZSTD;
            chunk->stored.len += packed;
            return ERR_OK;
        }
    }
    strbuf_append(&chunk->stored, raw.data, raw.len); // there is room
    return ERR_OK;
}

static void
pack(const struct chunk_packer *packer, struct ZSTD_CCtx_s *zstd, struct packed_chunk *chunk)
{
    if (store(packer, zstd, chunk) != ERR_OK) {
        return;
    }
    uint8_t *bytes = (uint8_t *)chunk->stored.data;
    chunk->head.raw_bytes = chunk->raw.len;
    chunk->head.stored_bytes = chunk->stored.len - CHUNK_HEAD_BYTES;
    chunk->head.payload_hash = chunk_hash(bytes + CHUNK_HEAD_BYTES, chunk->head.stored_bytes);
    chunk_head_put(&chunk->head, bytes);
}

static struct ZSTD_CCtx_s *new_zstd(int level)
{
    struct ZSTD_CCtx_s *zstd = ZSTD_createCCtx();
    if (zstd != NULL) {
        (void)ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, level); // clamped by zstd
    }
    return zstd;
}

// The oldest chunk that waits for a worker; NULL if there is none. The lock is held.
static struct packed_chunk *oldest_submitted(struct chunk_packer *packer)
{
    for (unsigned i = 0; i < PACKER_JOBS; i++) {
        struct packed_chunk *chunk = packer->jobs + (packer->first + i) % PACKER_JOBS;
        if (chunk->state == PACKER_SUBMITTED) {
            return chunk;
        }
    }
    return NULL;
}

static void *work(void *context)
{
    struct chunk_packer *packer = context;
    struct ZSTD_CCtx_s *zstd = new_zstd(packer->level);
    // Locks of our own, used as they should be, cannot fail.
    (void)pthread_mutex_lock(&packer->lock);
    while (!packer->is_ending) {
        struct packed_chunk *chunk = oldest_submitted(packer);
        if (chunk == NULL) {
            (void)pthread_cond_wait(&packer->submitted, &packer->lock);
            continue;
        }
        chunk->state = PACKER_TAKEN;
        (void)pthread_mutex_unlock(&packer->lock);
        if (zstd != NULL) {
            pack(packer, zstd, chunk);
        } else {
            (void)err_set(&chunk->info, ERR_NO_MEMORY, "no memory for zstd");
        }
        (void)pthread_mutex_lock(&packer->lock);
        chunk->state = PACKER_PACKED;
        (void)pthread_cond_signal(&packer->packed);
    }
    (void)pthread_mutex_unlock(&packer->lock);
    (void)ZSTD_freeCCtx(zstd); // accepts NULL
    return NULL;
}

enum err
chunk_packer_init(struct chunk_packer *packer, int level, bool is_plain, unsigned worker_count)
{
    *packer = (struct chunk_packer){.level = level,
                                    .is_plain = is_plain,
                                    .lock = PTHREAD_MUTEX_INITIALIZER,
                                    .submitted = PTHREAD_COND_INITIALIZER,
                                    .packed = PTHREAD_COND_INITIALIZER};
    packer->zstd = new_zstd(level);
    if (packer->zstd == NULL) {
        return ERR_NO_MEMORY;
    }
    packer->workers_wanted = worker_count < PACKER_WORKERS_MAX ? worker_count : PACKER_WORKERS_MAX;
    return ERR_OK;
}

static void begin_workers(struct chunk_packer *packer)
{
    while (packer->worker_count < packer->workers_wanted &&
           pthread_create(&packer->workers[packer->worker_count], NULL, work, packer) == 0) {
        packer->worker_count++;
    }
    packer->workers_wanted = packer->worker_count; // if there are fewer, it is not tried again
}

void chunk_packer_release(struct chunk_packer *packer)
{
    if (packer->worker_count > 0) {
        (void)pthread_mutex_lock(&packer->lock);
        packer->is_ending = true;
        (void)pthread_cond_broadcast(&packer->submitted);
        (void)pthread_mutex_unlock(&packer->lock);
    }
    for (unsigned i = 0; i < packer->worker_count; i++) {
        (void)pthread_join(packer->workers[i], NULL);
    }
    for (unsigned i = 0; i < PACKER_JOBS; i++) {
        strbuf_release(&packer->jobs[i].raw);
        strbuf_release(&packer->jobs[i].stored);
    }
    (void)ZSTD_freeCCtx(packer->zstd); // accepts NULL
    *packer = (struct chunk_packer){0};
}

struct packed_chunk *chunk_packer_begin(struct chunk_packer *packer)
{
    struct packed_chunk *chunk = packer->jobs + (packer->first + packer->count) % PACKER_JOBS;
    strbuf_clear(&chunk->raw);
    chunk->info = (struct err_info){0};
    return chunk;
}

void chunk_packer_submit(struct chunk_packer *packer)
{
    struct packed_chunk *chunk = packer->jobs + (packer->first + packer->count) % PACKER_JOBS;
    packer->count++;
    const bool is_short = chunk->raw.len < SHORT_BYTES;
    if (!is_short) {
        begin_workers(packer);
    }
    const bool is_ours = is_short || packer->worker_count == 0;
    if (is_ours) {
        pack(packer, packer->zstd, chunk);
    }
    (void)pthread_mutex_lock(&packer->lock);
    chunk->state = is_ours ? PACKER_PACKED : PACKER_SUBMITTED;
    if (!is_ours) {
        (void)pthread_cond_signal(&packer->submitted);
    }
    (void)pthread_mutex_unlock(&packer->lock);
}

const struct packed_chunk *chunk_packer_oldest(struct chunk_packer *packer)
{
    if (packer->count == 0) {
        return NULL;
    }
    const struct packed_chunk *chunk = packer->jobs + packer->first;
    (void)pthread_mutex_lock(&packer->lock);
    while (chunk->state != PACKER_PACKED) {
        (void)pthread_cond_wait(&packer->packed, &packer->lock);
    }
    (void)pthread_mutex_unlock(&packer->lock);
    return chunk;
}

void chunk_packer_done(struct chunk_packer *packer)
{
    (void)pthread_mutex_lock(&packer->lock);
    packer->jobs[packer->first].state = PACKER_FREE;
    packer->first = (packer->first + 1) % PACKER_JOBS;
    packer->count--;
    (void)pthread_mutex_unlock(&packer->lock);
}
