// SPDX-License-Identifier: MIT
// chunk_packer: see chunk_packer.h.
#include "recording/write/chunk_packer.h"

#include <zstd.h>

#include "host/os/mutex.h"

enum {
    SHORT_BYTES = 16 << 10, // packing less is quicker than waking a worker
};

static enum err no_memory(struct packed_chunk *chunk, size_t bytes)
{
    return err_set(&chunk->info, ERR_NO_MEMORY, "no memory for a chunk of %zu bytes", bytes);
}

// Encode the payload if needed, and set *out to it.
static enum err
take_payload(struct packer_bench *bench, struct packed_chunk *chunk, struct bytes *out)
{
    if (chunk->group.table == NULL) {
        *out = strbuf_bytes(&chunk->raw);
        return ERR_OK;
    }
    if (group_encode(&bench->encoder, &chunk->group, &bench->raw) != ERR_OK) {
        return err_set(&chunk->info, ERR_NO_MEMORY, "no memory for a group of %zu entries",
                       chunk->group.count);
    }
    *out = strbuf_bytes(&bench->raw);
    return ERR_OK;
}

// Replace *payload by its compressed form if that is smaller.
static enum err
compress(struct packer_bench *bench, struct packed_chunk *chunk, struct bytes *payload)
{
    const size_t bound = ZSTD_compressBound(payload->len);
    strbuf_clear(&bench->packed);
    if (bench->zstd == NULL || !strbuf_reserve(&bench->packed, bound)) {
        return no_memory(chunk, payload->len);
    }
    const size_t packed =
        ZSTD_compress2(bench->zstd, bench->packed.data, bound, payload->data, payload->len);
    if (ZSTD_isError(packed)) {
        return err_set(&chunk->info, ERR_NO_MEMORY, "cannot compress: %s",
                       ZSTD_getErrorName(packed));
    }
    if (packed < payload->len) {
        chunk->head.flags = CHUNK_ZSTD;
        *payload = (struct bytes){(const uint8_t *)bench->packed.data, packed};
    }
    return ERR_OK;
}

// Build head and payload in chunk->stored.
static enum err
store(const struct chunk_packer *packer, struct packer_bench *bench, struct packed_chunk *chunk)
{
    static const uint8_t room[CHUNK_HEAD_BYTES];
    struct bytes payload = {0};
    TRY(take_payload(bench, chunk, &payload));
    chunk->head.raw_bytes = payload.len;
    chunk->head.flags = 0;
    if (!packer->is_plain) {
        TRY(compress(bench, chunk, &payload));
    }
    strbuf_clear(&chunk->stored);
    strbuf_append(&chunk->stored, room, sizeof(room));
    strbuf_append(&chunk->stored, payload.data, payload.len);
    return chunk->stored.failed ? no_memory(chunk, payload.len) : ERR_OK;
}

static void
pack(const struct chunk_packer *packer, struct packer_bench *bench, struct packed_chunk *chunk)
{
    if (store(packer, bench, chunk) != ERR_OK) {
        return;
    }
    uint8_t *bytes = (uint8_t *)chunk->stored.data;
    chunk->head.stored_bytes = chunk->stored.len - CHUNK_HEAD_BYTES;
    chunk->head.payload_hash = chunk_hash(bytes + CHUNK_HEAD_BYTES, chunk->head.stored_bytes);
    chunk_head_put(&chunk->head, bytes);
}

// If zstd cannot be initialised, the chunks that need it report that.
static void bench_init(struct packer_bench *bench, int level)
{
    *bench = (struct packer_bench){.zstd = ZSTD_createCCtx()};
    if (bench->zstd != NULL) {
        (void)ZSTD_CCtx_setParameter(bench->zstd, ZSTD_c_compressionLevel, level); // clamped
    }
}

static void bench_release(struct packer_bench *bench)
{
    (void)ZSTD_freeCCtx(bench->zstd); // accepts NULL
    group_encoder_release(&bench->encoder);
    strbuf_release(&bench->raw);
    strbuf_release(&bench->packed);
}

// Return the oldest chunk without a worker, NULL if there is none. The caller holds the lock.
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
    struct packer_bench bench;
    bench_init(&bench, packer->level);
    // Correct use of our own locks cannot fail.
    mutex_lock(&packer->lock);
    while (!packer->is_ending) {
        struct packed_chunk *chunk = oldest_submitted(packer);
        if (chunk == NULL) {
            (void)pthread_cond_wait(&packer->submitted, &packer->lock);
            continue;
        }
        chunk->state = PACKER_TAKEN;
        mutex_unlock(&packer->lock);
        pack(packer, &bench, chunk);
        mutex_lock(&packer->lock);
        chunk->state = PACKER_PACKED;
        (void)pthread_cond_signal(&packer->packed);
    }
    mutex_unlock(&packer->lock);
    bench_release(&bench);
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
    bench_init(&packer->bench, level);
    if (packer->bench.zstd == NULL) {
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
    packer->workers_wanted = packer->worker_count; // no further attempt if fewer could be created
}

void chunk_packer_release(struct chunk_packer *packer)
{
    if (packer->worker_count > 0) {
        mutex_lock(&packer->lock);
        packer->is_ending = true;
        (void)pthread_cond_broadcast(&packer->submitted);
        mutex_unlock(&packer->lock);
    }
    for (unsigned i = 0; i < packer->worker_count; i++) {
        (void)pthread_join(packer->workers[i], NULL);
    }
    for (unsigned i = 0; i < PACKER_JOBS; i++) {
        strbuf_release(&packer->jobs[i].entries);
        strbuf_release(&packer->jobs[i].raw);
        strbuf_release(&packer->jobs[i].stored);
    }
    bench_release(&packer->bench);
    *packer = (struct chunk_packer){0};
}

unsigned chunk_packer_owning_count(const struct chunk_packer *packer)
{
    unsigned owning = 0;
    for (unsigned i = 0; i < packer->count; i++) {
        owning += packer->jobs[(packer->first + i) % PACKER_JOBS].entries.data != NULL;
    }
    return owning;
}

struct packed_chunk *chunk_packer_begin(struct chunk_packer *packer)
{
    struct packed_chunk *chunk = packer->jobs + (packer->first + packer->count) % PACKER_JOBS;
    strbuf_clear(&chunk->raw);
    chunk->group = (struct entry_group){0};
    chunk->info = (struct err_info){0};
    return chunk;
}

static size_t given_bytes(const struct packed_chunk *chunk)
{
    return chunk->group.table != NULL ? chunk->group.count * chunk->group.table->column_count
                                      : chunk->raw.len;
}

void chunk_packer_submit(struct chunk_packer *packer)
{
    struct packed_chunk *chunk = packer->jobs + (packer->first + packer->count) % PACKER_JOBS;
    const bool is_short = given_bytes(chunk) < SHORT_BYTES;
    if (!is_short) {
        begin_workers(packer);
    }
    const bool is_ours = is_short || packer->worker_count == 0;
    if (is_ours) {
        pack(packer, &packer->bench, chunk);
    }
    mutex_lock(&packer->lock);
    packer->count++;
    chunk->state = is_ours ? PACKER_PACKED : PACKER_SUBMITTED;
    if (!is_ours) {
        (void)pthread_cond_signal(&packer->submitted);
    }
    mutex_unlock(&packer->lock);
}

const struct packed_chunk *chunk_packer_oldest(struct chunk_packer *packer)
{
    if (packer->count == 0) {
        return NULL;
    }
    const struct packed_chunk *chunk = packer->jobs + packer->first;
    mutex_lock(&packer->lock);
    while (chunk->state != PACKER_PACKED) {
        (void)pthread_cond_wait(&packer->packed, &packer->lock);
    }
    mutex_unlock(&packer->lock);
    return chunk;
}

void chunk_packer_done(struct chunk_packer *packer)
{
    strbuf_release(&packer->jobs[packer->first].entries);
    mutex_lock(&packer->lock);
    packer->jobs[packer->first].state = PACKER_FREE;
    packer->first = (packer->first + 1) % PACKER_JOBS;
    packer->count--;
    mutex_unlock(&packer->lock);
}
