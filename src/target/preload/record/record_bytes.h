// SPDX-License-Identifier: MIT
// record_bytes: the part of record.c for a session with --sample, where some blocks are chosen
// (target/producer/byte_sampler.h) and all others only counted.
//
//   malloc ---> passes: two additions                free ---> not in the filter: nothing to do
//           `-> chosen: entered into the blocks            `-> taken out of them: FREE is sent
//               -> stack -> ALLOC_SAMPLED is sent
//
// What happens to an event is decided when it happens, also in a signal handler that interrupts a
// hook, whose events are sent later: before the program can pass a block on, it is in the set, and
// before its address can be used again, it is out of it. A realloc takes the old block out before
// the call (record_realloc_begins) and notes that by a stamp.
//
// State: g_sampled_blocks, the chosen blocks of this process, mapped for the first of them; a
// forked child continues with its copy. Without memory for it nothing is chosen, and all is
// counted. Context: T.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "target/preload/process/deferred.h"
#include "target/preload/process/thread_state.h"
#include "target/producer/sampled_blocks.h"

// Take a block that is about to be freed out of the set. False: there is nothing to send.
bool record_bytes_takes_out(uint64_t address);

// Put a block back that was taken out and then not freed.
void record_bytes_put_back(uint64_t address);

// Decide about an event. True: send what is left of it by record_bytes_send. `recording` is
// SESSION_RECORD_BYTES or SESSION_RECORD_BYTES_FREES. The guard need not be held.
bool record_bytes_keeps(struct thread_state *t, struct event *event, uint32_t recording);

// Send an event that is kept. `slot` names the block's stack, or is STACK_SLOT_NONE; a free needs
// none. The guard is held.
void record_bytes_send(struct thread_state *t, const struct event *event, uint32_t slot);
