// SPDX-License-Identifier: MIT
// record_hot: record_alloc and record_free, inline for the most frequent hooks.
//
// The inline part handles most events: the hook is not nested, everything is recorded, the stack is
// the last one, the clock has not moved, and the book counts it (book_try.h). It makes no call, so
// the hook saves no registers for it. All other work is in record.c, in a call after which the
// caller needs none of its variables; it begins where the inline part stopped.
//
// It reads the words of any stack (target/unwind/walk/fast_path.h), so compile it without
// AddressSanitizer. Context: T, as record.h.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "pointer_address_arch.h"
#include "target/preload/record/record.h"
#include "target/preload/record/record_guard.h"
#include "target/preload/record/record_sampled.h"
#include "target/producer/entry/lane_try.h"
#include "target/unwind/walk/fast_path.h"

// Do record_alloc for the function that returns to `pc`, with its registers. Returns the block.
void *record_alloc_slowly(uint64_t pc, uint64_t sp, uint64_t fp, void *block, size_t size_bytes);

// Do record_alloc_slowly when the guard is held and everything is recorded.
void *record_alloc_walking(
    struct thread_state *t, uint64_t pc, uint64_t sp, uint64_t fp, void *block, size_t size_bytes);

// Do record_alloc_walking when the slot of the stack is known too.
void *record_alloc_in_slot(struct thread_state *t, void *block, size_t size_bytes, uint32_t slot);

// Release the guard and send the deferred events. Returns the block.
void *record_drain(struct thread_state *t, void *block);

// Do record_free when the guard is held and everything is recorded.
void record_free_guarded(struct thread_state *t, const void *block);

// Whether the lane still belongs to this process. A signal handler that forks in the middle of a
// hook leaves the child's copy of that hook with its parent's lane. The walk, which takes longest,
// comes before this check.
ALWAYS_INLINE bool still_ours(const struct thread_state *t)
{
    const uint64_t generation = process_generation();
    return LIKELY(t->generation == generation) || t->generation >> 32 == generation >> 32;
}

// Return the registers of the hook's caller, read again from the hook's frame, so that they need
// not be kept for a rare path.
ALWAYS_INLINE struct unwind_regs hot_caller_again(void)
{
    atomic_signal_fence(memory_order_seq_cst);
    return unwind_caller_regs();
}

// Whether a new block is within the budget of the thread, which has `pass` and `t`; then it is
// counted. `t` may be NULL, or belong to a forked child's parent; then it is not read. The guard
// may be held: a handler's additions come before or after those of the hook that it interrupted.
ALWAYS_INLINE bool
record_alloc_passes(struct thread_pass *pass, struct thread_state *t, size_t size_bytes)
{
    if (UNLIKELY(arch_own_counter_subtract(&pass->budget_bytes, size_bytes + 1))) {
        // It has wrapped around. What a handler lets pass before this line is counted.
        atomic_store_explicit(&pass->budget_bytes, 0, memory_order_relaxed);
        return false;
    }
    // Else it is a forked child, or does not count now. The long way makes another budget.
    if (UNLIKELY(pass->generation != process_generation()) ||
        UNLIKELY(process_recording() != SESSION_RECORD_SAMPLE)) {
        return false;
    }
    byte_sampler_count(thread_state_lane(t), size_bytes);
    return true;
}

// Whether the block is one that was not chosen, so that its free is not recorded. A forked child
// does not have the words of its parent.
ALWAYS_INLINE bool record_free_passes(const struct thread_pass *pass, const void *block)
{
    return pass->directory != NULL && LIKELY(pass->generation == process_generation()) &&
           book_try_is_unrecorded(pass->directory, arch_address_of(block));
}

// Do record_alloc for the caller of the hook that this is inlined into; returns the block. `t` is
// thread_way_state().
ALWAYS_INLINE void *record_alloc_hot(struct thread_state *t, void *block, size_t size_bytes)
{
    if (UNLIKELY(!guard_may_enter(t) || what_to_record(t) != SESSION_RECORD_ALL)) {
        const struct unwind_regs caller = hot_caller_again();
        return record_alloc_slowly(caller.pc, caller.sp, caller.fp, block, size_bytes);
    }
    guard_take(t, OUR_FRAME);
    const struct unwind_regs regs = unwind_caller_regs();
    const uint32_t slot = stack_dictionary_find(&t->stacks, unwind_same(t->unwind, &regs));
    if (slot == STACK_SLOT_NONE || UNLIKELY(t->extras != 0)) {
        const struct unwind_regs caller = hot_caller_again();
        return record_alloc_walking(t, caller.pc, caller.sp, caller.fp, block, size_bytes);
    }
    if (UNLIKELY(!still_ours(t)) ||
        !lane_try_allocate(&t->producer, arch_address_of(block), size_bytes, slot)) {
        return record_alloc_in_slot(t, block, size_bytes, slot);
    }
    t->last_allocated = arch_address_of(block);
    guard_release(t);
    return guard_has_deferred(t) ? record_drain(t, block) : block;
}

// What is left to do after record_free_at_once.
enum record_free_rest {
    RECORD_FREE_NOTHING,
    RECORD_FREE_ALL,     // record_free
    RECORD_FREE_GUARDED, // record_free_guarded
    RECORD_FREE_DRAIN,   // guard_drain
};

// Do record_free as far as it needs no call. `t` is thread_way_state().
ALWAYS_INLINE enum record_free_rest record_free_at_once(struct thread_state *t, const void *block)
{
    if (UNLIKELY(!guard_may_enter(t) || what_to_record(t) > SESSION_RECORD_FREES)) {
        return RECORD_FREE_ALL;
    }
    guard_take(t, OUR_FRAME);
    if (!lane_try_free(&t->producer, arch_address_of(block))) {
        return RECORD_FREE_GUARDED;
    }
    t->last_freed = arch_address_of(block);
    guard_release(t);
    return guard_has_deferred(t) ? RECORD_FREE_DRAIN : RECORD_FREE_NOTHING;
}

ALWAYS_INLINE void
record_free_finish(struct thread_state *t, const void *block, enum record_free_rest rest)
{
    switch (rest) {
    case RECORD_FREE_NOTHING:
        return;
    case RECORD_FREE_ALL:
        record_free(block);
        return;
    case RECORD_FREE_GUARDED:
        record_free_guarded(t, block);
        return;
    case RECORD_FREE_DRAIN:
        guard_drain(t);
        return;
    }
}

// Do record_free. `t` is thread_way_state().
ALWAYS_INLINE void record_free_hot(struct thread_state *t, const void *block)
{
    record_free_finish(t, block, record_free_at_once(t, block));
}
