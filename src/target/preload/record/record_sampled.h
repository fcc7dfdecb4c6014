// SPDX-License-Identifier: MIT
// record_sampled: what record.c does in a session with --overflow=sample, where a block may be left
// out because the recorder does not keep up (target/producer/sampler.h).
//
// The coin is tossed before the stack is walked: what is left out costs next to nothing.
//
//   record_sampled_takes()  --false--> done
//        |true: find the slot of the stack
//   record_sampled_send()
//
// Context: T, under the guard. State: g_left_out, one table for the process, mapped when a ring is
// first more than half full; a forked child goes on with its copy. Without memory for it, the frees
// of what was left out are all sent, and the recorder finds no blocks for them.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "target/preload/process/deferred.h"
#include "target/preload/process/thread_state.h"

// A block was allocated or reallocated; the free of the old one is recorded here. True: it is to
// be recorded, and stands for 1 << *shift.
bool record_sampled_takes(struct thread_state *t, const struct event *event, uint32_t *shift);

// The rest of that: `slot` names its stack, or is STACK_SLOT_NONE.
void record_sampled_send(struct thread_state *t,
                         const struct event *event,
                         uint32_t slot,
                         uint32_t shift);

// A block is about to be freed. False: recording is over.
bool record_sampled_free(struct thread_state *t, uint64_t address);
