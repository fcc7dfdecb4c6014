// SPDX-License-Identifier: MIT
// record_sampled: the part of record.c for a session where some blocks are chosen
// (target/producer/byte_sampler.h) and all others only counted: with --sample, with
// --overflow=sample while the recorder does not keep up, and once words have reached --max-memory.
//
//   malloc ---> within the budget: counted         free ---> no word there: nothing to do
//           `-> chosen: its word is put                  `-> its word is taken
//               -> stack -> counted with its weight          -> counted with its weight
//
// The budget (session/thread_pass.h) is the distance to the moment of the next chosen block. The
// thread's next event after a chosen block takes the long way, which tells whether that block was
// temporary; and so do all events after record_forget_last until somebody asks for the last one.
//
// The level is the higher one of the ring's and of the session's memory
// (target/producer/book/block_choice.h). A block's row is of the level at which it was
// chosen (target/producer/words/process_words.h), so a thread that frees it knows its weight. A
// block that is not chosen ends no stale word: where blocks are freed past the hooks, one lives
// until the next free of its address.
//
// What happens to an event is decided when it happens, also in a signal handler that interrupts a
// hook, whose events are sent later: before the program can pass a block on, it has a word, and
// before its address can be used again, that is taken.
//
// A process without words can choose nothing, and counts all. Context: T.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "target/preload/process/deferred.h"
#include "target/preload/process/thread_state.h"

extern atomic_bool g_record_passes __attribute__((visibility("hidden")));

// Whether threads may have a budget.
ALWAYS_INLINE bool record_may_pass(void)
{
    return atomic_load_explicit(&g_record_passes, memory_order_relaxed); // it guards nothing
}

// Let the thread's next event take the long way.
void record_sampled_stop_passing(void);

// Decide about an event. True: send what is left of it by record_sampled_send. `recording` is
// SESSION_RECORD_SAMPLE or SESSION_RECORD_SAMPLE_FREES. The guard is held, or, if `is_nested`, by
// the hook that we interrupted.
bool record_sampled_keeps(struct thread_state *t,
                          struct event *event,
                          uint32_t recording,
                          bool is_nested);

// Before the slot of the stack of a kept block is looked for.
ALWAYS_INLINE void record_sampled_prepare(struct thread_state *t, const struct event *event)
{
    t->producer.row_level = event->level;
}

// Send an event that is kept. `slot` names the block's stack, or is STACK_SLOT_NONE; a free needs
// none. The guard is held.
void record_sampled_send(struct thread_state *t, const struct event *event, uint32_t slot);
