// SPDX-License-Identifier: MIT
// record: turns the calls of an allocator into records for the recorder.
//
// Rule of order: an allocation is recorded after the real function returned, a free before the real
// function is called, a realloc after it succeeded. So no block of a thread is ever recorded as
// freed before it was recorded as allocated. Between threads, the block's word does the same
// (producer/book).
//
// Context: T, called by the hooks without the guard held. errno is kept. In a process without a
// session the functions do nothing.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/preload/process/deferred.h"
#include "target/producer/freed_note.h"
#include "target/unwind/unwind.h"

struct thread_state;

// Record that the function that returns to `caller` allocated `block` (not NULL) with a requested
// size of `size_bytes`.
void record_alloc(const struct unwind_regs *caller, const void *block, size_t size_bytes);

// Before a realloc: take what is known of the block.
struct freed_note record_realloc_begins(const void *block);

// Note that the call failed and the block is still allocated.
void record_realloc_fails(struct freed_note freed);

// Record that `old_block` became `block`; neither is NULL. `freed` is from record_realloc_begins,
// or zero.
void record_realloc(const struct unwind_regs *caller,
                    const void *old_block,
                    const void *block,
                    size_t size_bytes,
                    struct freed_note freed);

// Record that `block` (not NULL) is about to be freed.
void record_free(const void *block);

// Return the slot of the stack that begins with `caller`, and define it on the lane if needed; or
// STACK_SLOT_NONE. The guard is held.
uint32_t record_slot_of_caller(struct thread_state *t, const struct unwind_regs *caller);

// The same of a stack of one frame: nothing is walked.
uint32_t record_slot_of_frame(struct thread_state *t, uint64_t pc);

// Record EVENT_ALLOC or EVENT_REALLOC with the stack in `slot` (or STACK_SLOT_NONE). The guard is
// held.
void record_block(struct thread_state *t, const struct event *event, uint32_t slot);

// Send one deferred event, for deferred_drain. `context` is the thread_state, under the guard.
void record_deferred(void *context, const struct deferred_event *deferred);

// Return what tells the deferred events of the thread apart; 0: there are none.
uint64_t record_expected_deferred(const struct thread_state *t);

// Note that all deferred events of the thread have been sent. False, and nothing is changed: a
// handler has come since record_expected_deferred returned `expected`.
bool record_no_deferred(const struct thread_state *t, uint64_t expected);

// Return the address that the calling thread last recorded as allocated, or as freed; 0 if it was
// forgotten since. So a caller finds out whether a function that allocates or frees passes through
// another hook.
uint64_t record_last_allocated(void);
uint64_t record_last_freed(void);
void record_forget_last(void);
