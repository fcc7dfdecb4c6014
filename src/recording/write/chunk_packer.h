// SPDX-License-Identifier: MIT
// chunk_packer: encode and compress chunks, on worker threads if available, and return them in
// order.
//
//   writer: begin, fill, submit --> workers: encode, compress --> writer: oldest, write, done
//
// The user gives a chunk as a payload, or as a group of entries to encode first. At most
// PACKER_JOBS chunks are pending, so the user takes the oldest one back before it begins another.
// Without workers, and for a short chunk, chunk_packer_submit packs the chunk itself. If no further
// thread can be created, the packer continues with the threads that exist, or with none.
// Memory: for each thread the buffers to encode and compress one chunk; for each pending chunk its
// input, and then its packed form. Context: H; one thread uses the packer. A worker touches only
// the chunk that it packs, and reads its entries.
// Failure: a returned chunk holds the error of its packing.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/text/strbuf.h"
#include "recording/format/chunk.h"
#include "recording/write/group_encoder.h"

#define PACKER_JOBS        24u
#define PACKER_WORKERS_MAX 3u

struct ZSTD_CCtx_s;

enum packer_state {
    PACKER_FREE = 0,
    PACKER_SUBMITTED,
    PACKER_TAKEN, // a worker packs it
    PACKER_PACKED,
};

struct packed_chunk {
    enum packer_state state;
    struct chunk_head head;   // the user sets type, generation and part, packing sets the rest
    struct entry_group group; // entries to encode; its table is NULL if the input is `raw`
    struct strbuf entries;    // entries of the group, if the chunk owns them
    struct strbuf raw;        // payload, if the input is not a group
    struct strbuf stored;     // head and payload as written
    struct err_info info;     // a code other than ERR_OK if packing failed
};

// The buffers of a packing thread.
struct packer_bench {
    struct ZSTD_CCtx_s *zstd; // owned
    struct group_encoder encoder;
    struct strbuf raw;    // payload of a group
    struct strbuf packed; // a compressed payload
};

struct chunk_packer {
    struct packed_chunk jobs[PACKER_JOBS]; // a ring
    unsigned first;                        // oldest pending chunk
    unsigned count;                        // number of pending chunks
    struct packer_bench bench;             // for packing on the user's thread
    int level;
    bool is_plain;

    pthread_mutex_t lock; // protects the states
    pthread_cond_t submitted;
    pthread_cond_t packed;
    pthread_t workers[PACKER_WORKERS_MAX];
    unsigned worker_count;
    unsigned workers_wanted; // started with the first chunk of enough size; 0: creating a thread
                             // failed, or none are wanted
    bool is_ending;
};

// Initialise. The packer must not move. ERR_NO_MEMORY.
enum err
chunk_packer_init(struct chunk_packer *packer, int level, bool is_plain, unsigned worker_count)
    MUST_USE;

// Wait for the threads and release. Accepts a zeroed packer.
void chunk_packer_release(struct chunk_packer *packer);

static inline bool chunk_packer_is_full(const struct chunk_packer *packer)
{
    return packer->count == PACKER_JOBS;
}

// Return the number of pending chunks that own their entries.
unsigned chunk_packer_owning_count(const struct chunk_packer *packer);

// Return the next chunk, empty, for the caller to fill and submit. The packer must not be full.
// What the group borrows must last until the chunk comes back.
struct packed_chunk *chunk_packer_begin(struct chunk_packer *packer);
void chunk_packer_submit(struct chunk_packer *packer);

// Wait for the oldest pending chunk and return it, packed; NULL if none is pending. Valid until
// chunk_packer_done.
const struct packed_chunk *chunk_packer_oldest(struct chunk_packer *packer);
void chunk_packer_done(struct chunk_packer *packer);
