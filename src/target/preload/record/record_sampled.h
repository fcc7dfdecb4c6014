// SPDX-License-Identifier: MIT
// record_sampled: the part of record.c for a session with --overflow=sample, where a block may be
// not sampled because the recorder does not keep up (target/producer/sampler.h).
//
// The sampler decides before the stack is walked: an unsampled block costs next to nothing.
//
//   record_sampled_takes()  --false--> done
//        |true: find the slot of the stack
//   record_sampled_send()
//
// Context: T, under the guard. State: g_unsampled_blocks, one table for the process, mapped when
// a ring is first more than half full; a forked child continues with its copy. Without memory for
// it, all frees of unsampled blocks are sent, and the recorder finds no blocks for them.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "target/preload/process/deferred.h"
#include "target/preload/process/thread_state.h"

// Decide about an allocated or reallocated block; record the free of the old block. True: the block
// is to be recorded, chosen at *level.
bool record_sampled_takes(struct thread_state *t, const struct event *event, uint32_t *level);

// Do the rest of record_sampled_takes. `slot` names the block's stack, or is STACK_SLOT_NONE.
void record_sampled_send(struct thread_state *t,
                         const struct event *event,
                         uint32_t slot,
                         uint32_t level);

// Record a block that is about to be freed. False: recording has ended.
bool record_sampled_free(struct thread_state *t, uint64_t address);
