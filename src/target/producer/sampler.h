// SPDX-License-Identifier: MIT
// sampler: chooses the blocks to record when the recorder does not keep up (--overflow=sample).
//
//   ring less than half full   level 0       every block is recorded
//   fuller, by step            level 1..20   a block of up to 127 bytes with the probability of
//                                            one in 2^level; of twice the size, twice as likely
//
// A block that is recorded with the probability 1 / 2^shift represents 2^shift such blocks (Horvitz
// and Thompson's estimator). So a sum over blocks, at any moment, is right on average. This holds
// although the level changes, because the level depends on earlier records and on the recorder,
// never on the next random number. Large blocks are likelier to be recorded, so one block adds at
// most some 128 * 2^level bytes to an estimate. A block keeps its weight until it is freed. So
// blocks from before the first level above 0 weigh 1, and their frees are sent as usual.
//
// The sums are unbiased only because a sent record is never taken back, and a chosen block is
// always sent. Each level takes a 128th of the ring, and so lasts twice as long as the one before.
// The last level ends where two thirds of the ring are full; the rest has room for the frees of all
// blocks in the ring. So a thread waits only if it frees more blocks than that which were recorded
// earlier, faster than the recorder reads.
//
// Unsampled allocations and their bytes are counted exactly (lane_header.unsampled_*), so the
// totals are known. unsampled_blocks.h follows the live bytes among them, within its limits. Each
// thread sends its balance (unsampled bytes that it allocated less those that it freed, UNSAMPLED)
// whenever the balance has changed by SAMPLER_GRAIN_BYTES. Balances must not fill the
// ring by themselves, so where many follow one another, the grain doubles. The record states
// how far the balance may be off until the next one. Context: T, the lane's thread under the guard.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "session/sampling_level.h"
#include "session/unsampled_blocks.h"
#include "target/producer/lane_producer.h"

struct sampler {
    struct lane_producer *producer; // borrowed
    uint64_t random;
    int64_t balance_bytes; // unsampled bytes of this thread, less those that it freed
    int64_t sent_bytes;    // the balance that was sent last
    uint64_t sent_pos;     // its position in the ring
    uint64_t grain_bytes;
    uint64_t forgotten_blocks; // since then
    uint64_t forgotten_bytes;
    uint32_t close_count; // balances sent with few other records in between
};

// Initialize `s`. `seed` should differ between threads.
void sampler_init(struct sampler *s, struct lane_producer *producer, uint64_t seed);

// Decide about an allocated block. True: it is to be recorded, and represents 1 << *shift. False:
// it is unsampled, and counted. `table` may be NULL.
bool sampler_takes(struct sampler *s,
                   struct unsampled_blocks *table,
                   uint64_t address,
                   uint64_t size_bytes,
                   uint32_t *shift);

// Account for a block that is about to be freed. True: it is unsampled; there is nothing to send.
bool sampler_forgets(struct sampler *s, struct unsampled_blocks *table, uint64_t address);

// Send the balance at the thread's end.
void sampler_end(struct sampler *s);
