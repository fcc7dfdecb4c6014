// SPDX-License-Identifier: MIT
// chunk_packer: encodes and compresses chunks, on other threads if there are some, and hands them
// back in order.
//
//   writer: begin, fill, submit --> workers: encode, compress --> writer: oldest, write, done
//
// A chunk is given as its payload, or as a group of entries, which is encoded first. At
// most PACKER_JOBS chunks are under way, so its user takes the oldest one back before it begins
// another. Without workers, and if it is short, a chunk is packed where it is submitted. If no
// thread can be had, it goes on with those that there are, or none.
// Memory: for each thread what encoding and compressing one chunk takes; of the chunks under way
// what they were given, and then what they are packed to. Context: H; one thread uses it. The
// workers touch nothing but the chunk that they pack, and read its entries.
// Failure: a chunk that could not be packed says so when it comes back.
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
    PACKER_TAKEN, // by a worker
    PACKER_PACKED,
};

struct packed_chunk {
    enum packer_state state;
    struct chunk_head head;   // type, generation and part by its user, the rest by packing
    struct entry_group group; // what the payload is made of; its table is NULL if `raw` is it
    struct strbuf entries;    // of the group, if it owns them
    struct strbuf raw;        // the payload, if it is no group's
    struct strbuf stored;     // head and payload as they are to be written
    struct err_info info;     // its code is not ERR_OK if packing failed
};

// What a thread packs with.
struct packer_bench {
    struct ZSTD_CCtx_s *zstd; // owned
    struct group_encoder encoder;
    struct strbuf raw;    // the payload of a group
    struct strbuf packed; // a compressed payload
};

struct chunk_packer {
    struct packed_chunk jobs[PACKER_JOBS]; // in turn
    unsigned first;                        // the oldest one under way
    unsigned count;                        // under way
    struct packer_bench bench;             // for packing without workers
    int level;
    bool is_plain;

    pthread_mutex_t lock; // guards the states
    pthread_cond_t submitted;
    pthread_cond_t packed;
    pthread_t workers[PACKER_WORKERS_MAX];
    unsigned worker_count;
    unsigned workers_wanted; // begun with the first chunk that is worth it; 0: none can be had
    bool is_ending;
};

// `packer` must stay where it is. ERR_NO_MEMORY.
enum err
chunk_packer_init(struct chunk_packer *packer, int level, bool is_plain, unsigned worker_count)
    MUST_USE;

// Waits for its threads. Accepts a zeroed one.
void chunk_packer_release(struct chunk_packer *packer);

static inline bool chunk_packer_is_full(const struct chunk_packer *packer)
{
    return packer->count == PACKER_JOBS;
}

// How many of the chunks under way own their entries.
unsigned chunk_packer_owning_count(const struct chunk_packer *packer);

// The next chunk, empty, to be filled; the packer must not be full. Then submit it. What
// its group borrows must last until it comes back.
struct packed_chunk *chunk_packer_begin(struct chunk_packer *packer);
void chunk_packer_submit(struct chunk_packer *packer);

// The oldest chunk under way, packed; waits for it. NULL if there is none. Valid until _done.
const struct packed_chunk *chunk_packer_oldest(struct chunk_packer *packer);
void chunk_packer_done(struct chunk_packer *packer);
