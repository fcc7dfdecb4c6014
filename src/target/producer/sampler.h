// SPDX-License-Identifier: MIT
// sampler: chooses the blocks to record when the recorder does not keep up (--overflow=sample).
//
//   ring less than half full   level 0       every block is recorded
//   fuller, by step            level 1..16   as with --sample=BYTES (byte_sampler.h); BYTES is
//                                            64 * 2^level (session/sampling_level.h)
//
// Sums over blocks are right on average at any moment, although the level changes: it depends on
// earlier records and on the recorder, never on the next moment that chooses a block. A block keeps
// its weight until it is freed. So blocks from before the first level above 0 weigh 1, and their
// frees are sent as usual. A sent record is never taken back, and a chosen block is always sent.
//
// Each level takes a 128th of the ring for the blocks that it chooses, and so lasts twice as long
// as the one before. All levels take an eighth of the ring. They leave three eighths to the frees
// of blocks that were recorded earlier (lane_producer.h). So a thread waits only if it frees more
// of them than that, faster than the recorder reads.
//
// Unsampled allocations and their bytes are counted exactly (lane_header.unsampled_*), so the
// totals are known. unsampled_blocks.h keeps the live ones among them, as many as fit. A thread's
// balance is its unsampled allocated bytes minus its unsampled freed bytes. The thread sends
// it (UNSAMPLED) whenever it has changed by SAMPLER_GRAIN_BYTES; blocks that unsampled_blocks.h had
// to drop count as a change. Balances must not fill the ring by themselves, so where many follow
// one another, the grain doubles. The record states how far the balance may be off until the next
// one. Context: T, the lane's thread under the guard.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "session/unsampled_blocks.h"
#include "target/producer/byte_sampler.h"
#include "target/producer/lane_producer.h"

struct sampler {
    struct lane_producer *producer; // borrowed
    struct byte_sampler *choice;    // borrowed
    int64_t balance_bytes;          // unsampled bytes of this thread, less those that it freed
    int64_t sent_bytes;             // the balance that was sent last
    uint64_t sent_pos;              // its position in the ring
    uint64_t grain_bytes;
    uint64_t forgotten_blocks; // since then
    uint64_t forgotten_bytes;
    uint32_t close_count; // balances sent with few other records in between
};

// Initialize `s`. `choice` was initialized with the mean 0.
void sampler_init(struct sampler *s, struct lane_producer *producer, struct byte_sampler *choice);

// Decide about an allocated block. True: it is to be recorded, chosen at *level. False: it is
// unsampled, and counted. `table` may be NULL.
bool sampler_takes(struct sampler *s,
                   struct unsampled_blocks *table,
                   uint64_t address,
                   uint64_t size_bytes,
                   uint32_t *level);

// Account for a block that is about to be freed. True: it is unsampled; there is nothing to send.
bool sampler_forgets(struct sampler *s, struct unsampled_blocks *table, uint64_t address);

// Send the balance at the thread's end.
void sampler_end(struct sampler *s);
