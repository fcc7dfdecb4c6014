// SPDX-License-Identifier: MIT
// block_choice: which of its blocks a thread records when not all are recorded, and at which level
// (session/books/sampling_level.h).
//
//   level of the ring (lane_producer.h)  --.
//   level of the session's memory (R)    ---+-- the higher one, after each decision --> interval
//   --sample                             --'
//
// Between two decisions blocks pass that are only counted (session/thread_pass.h), so the thread
// sees a new level when a moment has come: at a block that is more likely than others to be chosen.
// That block is still decided about at the level before. Else all blocks between a change and the
// next moment would stand for nothing.
//
// Context: T, the lane's thread under the guard, and its handlers; errno is kept.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "target/producer/byte_sampler.h"
#include "target/producer/lane_producer.h"

struct block_choice {
    struct byte_sampler sampler;
    uint32_t level; // of the next block
};

// Begin in a lane that was just claimed. `seed` should differ between threads.
void block_choice_init(struct block_choice *choice, const struct lane_producer *p, uint64_t seed);

// Return whether a new block is chosen, and count it if not. *level: of the block.
bool block_choice_takes(struct block_choice *choice,
                        struct lane_producer *p,
                        uint64_t size_bytes,
                        uint32_t *level);
