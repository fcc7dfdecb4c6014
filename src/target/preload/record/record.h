// SPDX-License-Identifier: MIT
// record: from what an allocator did to what the recorder reads.
//
// The one rule of order: an allocation is recorded after the real function returned, a free before
// the real one is called, a realloc (one record) after it succeeded. So no block of a thread is
// ever recorded as given back before it was recorded as taken, and between threads an address is
// paired first in, first out by the recorder (docs/design/preload.md).
//
// Context: T, called by the hooks without the guard held. errno is kept. Nothing is recorded, and
// nothing else happens, in a process without a session.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "session/freed_table.h"
#include "target/preload/process/deferred.h"
#include "target/unwind/unwind.h"

struct thread_state;

// `block` (not NULL) of `size_bytes` as asked for was allocated by the function that returns to
// `caller`.
void record_alloc(const struct unwind_regs *caller, const void *block, size_t size_bytes);

// A block is about to be reallocated: a moment before the old one is freed, if one is needed.
// record_realloc_ends must follow, after record_realloc if it succeeded.
struct freed_note record_realloc_begins(const void *block);
void record_realloc_ends(struct freed_note freed);

// `old_block` became `block`; neither is NULL. `freed` is of record_realloc_begins, or zero.
void record_realloc(const struct unwind_regs *caller,
                    const void *old_block,
                    const void *block,
                    size_t size_bytes,
                    struct freed_note freed);

// `block` (not NULL) is about to be freed.
void record_free(const void *block);

// The slot of the stack that begins with `caller`, defined on the lane if it was not; or
// STACK_SLOT_NONE. The guard is held.
uint32_t record_slot_of_caller(struct thread_state *t, const struct unwind_regs *caller);

// Takes down EVENT_ALLOC or EVENT_REALLOC with the stack in `slot`, which is as above. The guard is
// held.
void record_block(struct thread_state *t, const struct event *event, uint32_t slot);

// For deferred_drain: sends one deferred event. `context` is the thread_state, under the guard.
void record_deferred(void *context, const struct deferred_event *deferred);

// All deferred events of the thread have been sent.
void record_no_deferred(const struct thread_state *t);

// The address that the calling thread has recorded as allocated, or freed, last; 0 if there is none
// since they were forgotten. So a function that allocates or frees is found to come, or not to
// come, through another hook.
uint64_t record_last_allocated(void);
uint64_t record_last_freed(void);
void record_forget_last(void);
