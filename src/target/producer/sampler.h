// SPDX-License-Identifier: MIT
// sampler: which blocks a thread records when the recorder does not keep up (--overflow=sample).
//
//   ring less than half full   level 0       every block is recorded
//   fuller, by step            level 1..20   a block of up to 127 bytes with the probability of
//                                            one in 2^level; of twice the size, twice as likely
//
// A block that is recorded with the probability 1 / 2^shift stands for 2^shift such blocks
// (Horvitz and Thompson's estimator): whatever is summed over blocks, at whatever moment, is then
// right on average. That holds although the level moves, because it depends on what was recorded
// before and on the recorder, never on the coin that is about to be tossed. Since large blocks are
// likelier to be recorded, one block adds at most some 128 * 2^level bytes to what is estimated.
// A block keeps its weight until it is freed; so blocks from before the first level above 0 weigh
// 1, and their frees are sent as ever.
//
// Nothing that is sent is ever taken back, and what was decided to be sent is: only so the sums are
// unbiased. Each level takes a 128th of the ring, and so lasts twice as long as the one before;
// the last one ends where two thirds of the ring are full, and the rest has room for the frees of
// all that the ring holds. So a thread waits only if it frees, faster than the recorder reads,
// more blocks than that which were recorded earlier.
//
// What was left out is counted exactly, so that the totals of allocations and their bytes are
// known (lane_header.left_out_*). So are the bytes of it that are alive, as far as left_out.h
// follows them: each thread sends its balance (what it left out less what it freed of that,
// LEFT_OUT) whenever that has changed by SAMPLER_GRAIN_BYTES. A record of the balance must not fill
// the ring where nothing else does; so where many follow one another, the grain doubles. The record
// says how far the balance may be off until the next one. Context: T, the lane's thread under the
// guard.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "session/left_out.h"
#include "session/sampling_level.h"
#include "target/producer/lane_producer.h"

struct sampler {
    struct lane_producer *producer; // borrowed
    uint64_t random;
    int64_t balance_bytes; // left out by this thread, less what it freed of what any left out
    int64_t sent_bytes;    // the balance as it was sent last
    uint64_t sent_pos;     // where in the ring
    uint64_t grain_bytes;
    uint64_t forgotten_blocks; // since then
    uint64_t forgotten_bytes;
    uint32_t close_count; // balances that were sent with little else between them
};

// `seed` should differ between threads.
void sampler_init(struct sampler *s, struct lane_producer *producer, uint64_t seed);

// Decides about a block that was allocated. True: it is to be recorded, and stands for
// 1 << *shift. False: it is left out, and counted. `table` may be NULL.
bool sampler_takes(struct sampler *s,
                   struct left_out *table,
                   uint64_t address,
                   uint64_t size_bytes,
                   uint32_t *shift);

// A block is about to be freed. True: it had been left out; there is nothing to send.
bool sampler_forgets(struct sampler *s, struct left_out *table, uint64_t address);

// The thread ends: sends its balance.
void sampler_end(struct sampler *s);
