// SPDX-License-Identifier: MIT
// record_bytes: the part of record.c for a session with --sample, where some blocks are chosen
// (target/producer/byte_sampler.h) and all others only counted.
//
//   malloc ---> within the budget: counted           free ---> not in the filter: nothing to do
//           `-> chosen: entered into the blocks            `-> taken out of them: FREE is sent
//               -> stack -> ALLOC_SAMPLED is sent
//
// The budget (session/thread_pass.h) is the distance to the moment of the next chosen block. The
// thread's next event after a chosen block takes the long way, which tells whether that block was
// temporary; and so do all events after record_forget_last until somebody asks for the last one.
//
// What happens to an event is decided when it happens, also in a signal handler that interrupts a
// hook, whose events are sent later: before the program can pass a block on, it is in the set, and
// before its address can be used again, it is out of it. A realloc takes the old block out before
// the call (record_realloc_begins) and notes that by a stamp.
//
// State: g_record_bytes, the chosen blocks of this process, mapped at its first event; a forked
// child continues with its copy. Without memory for it nothing is chosen, and all is counted.
// Context: T.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "target/preload/process/deferred.h"
#include "target/preload/process/thread_state.h"
#include "target/producer/sampled_blocks.h"

extern struct record_bytes {
    _Atomic(struct sampled_blocks *) blocks;
    atomic_bool is_refused; // there was no memory: only a chosen block tries again
} g_record_bytes __attribute__((visibility("hidden")));

// Whether there are any, so that threads may have a budget.
ALWAYS_INLINE bool record_bytes_are_in_use(void)
{
    // Relaxed: a thread's pass has the pointer that it follows.
    return atomic_load_explicit(&g_record_bytes.blocks, memory_order_relaxed) != NULL;
}

// Take a block that is about to be freed out of the set. False: there is nothing to send.
bool record_bytes_takes_out(uint64_t address);

// Put a block back that was taken out and then not freed.
void record_bytes_put_back(uint64_t address);

// Let the thread's next event take the long way.
void record_bytes_stop_passing(void);

// Decide about an event. True: send what is left of it by record_bytes_send. `recording` is
// SESSION_RECORD_BYTES or SESSION_RECORD_BYTES_FREES. The guard need not be held.
bool record_bytes_keeps(struct thread_state *t, struct event *event, uint32_t recording);

// Send an event that is kept. `slot` names the block's stack, or is STACK_SLOT_NONE; a free needs
// none. The guard is held.
void record_bytes_send(struct thread_state *t, const struct event *event, uint32_t slot);
