// SPDX-License-Identifier: MIT
// abi_hooks (x86-64): see abi_hooks.h.
//
// Whatever is rare is in a function of its own that the hook jumps to, so that the hook saves no
// register for it. Such a function has the hook's caller for its own.
//
// Compiled with frame pointers, and with the unwinder's caller_arch.h instead of the agent's.
#include "target/agent/arch/x86_64/abi_hooks.h"

#include <stddef.h>

#include "base/compiler.h"
#include "target/agent/agent_outer.h"
#include "target/agent/agent_resize.h"

typedef void *original_function(uint64_t a, uint64_t b, uint64_t c, uint64_t d);

ALWAYS_INLINE original_function *function_at(uint64_t original)
{
    return (original_function *)original;
}

// Return the thread's slot if the call is certainly to be recorded. NULL: agent_outer_thread
// decides it.
ALWAYS_INLINE struct agent_thread *thread_at_once(void)
{
    struct agent_thread *thread = agent_thread_at_place(arch_thread_pointer());
    if (UNLIKELY(thread == NULL) || !agent_is_enabled() || UNLIKELY(thread->outer_call != 0)) {
        return NULL;
    }
    return thread;
}

// Do the same, and note the call.
ALWAYS_INLINE struct agent_thread *enter_at_once(uint64_t frame)
{
    struct agent_thread *thread = thread_at_once();
    if (LIKELY(thread != NULL)) {
        agent_outer_note(thread, frame);
    }
    return thread;
}

// The parts that differ between the kinds that allocate.
ALWAYS_INLINE uint64_t size_of(enum agent_hook hook, uint64_t a, uint64_t b)
{
    return hook == AGENT_MALLOC ? a : hook == AGENT_CALLOC ? a * b : b;
}

// Do the whole call. `size_bytes` is wrong if it overflowed; then there is no block.
static NOINLINE void *allocate_slowly(
    uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t original, uint64_t size_bytes)
{
    const struct unwind_regs caller = unwind_caller_regs();
    struct agent_thread *thread = agent_outer_enter(OUR_FRAME);
    void *block = function_at(original)(a, b, c, d);
    if (thread == NULL) {
        return block;
    }
    agent_outer_leave(thread);
    if (block != NULL) {
        record_alloc(&caller, block, size_bytes);
    }
    return block;
}

ALWAYS_INLINE void *
allocate(enum agent_hook hook, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t original)
{
    struct agent_thread *thread = enter_at_once(OUR_FRAME);
    if (thread == NULL) {
        return allocate_slowly(a, b, c, d, original, size_of(hook, a, b));
    }
    const uint64_t size_bytes = size_of(hook, a, b);
    void *block = function_at(original)(a, b, c, d);
    agent_outer_leave(thread);
    return LIKELY(block != NULL) ? agent_outer_record(thread, block, size_bytes) : NULL;
}

void *abi_hook_malloc(uint64_t size, uint64_t b, uint64_t c, uint64_t d, uint64_t original)
{
    return allocate(AGENT_MALLOC, size, b, c, d, original);
}

void *abi_hook_calloc(uint64_t count, uint64_t size, uint64_t c, uint64_t d, uint64_t original)
{
    return allocate(AGENT_CALLOC, count, size, c, d, original);
}

void *abi_hook_aligned_alloc(uint64_t a, uint64_t size, uint64_t c, uint64_t d, uint64_t original)
{
    return allocate(AGENT_ALIGNED_ALLOC, a, size, c, d, original);
}

// Return the form of a throwing operator that returns NULL: its address is before the trampoline.
ALWAYS_INLINE original_function *nothrow_of(uint64_t original)
{
    return function_at(((const uint64_t *)original)[-1]);
}

// Do the whole call. The program's unwinder does not know our frames: so the original that throws
// is jumped to.
static NOINLINE void *
new_slowly(uint64_t size, uint64_t b, uint64_t c, uint64_t d, uint64_t original)
{
    struct agent_thread *thread = agent_outer_enter(OUR_FRAME);
    if (thread != NULL) {
        void *block = nothrow_of(original)(size, b, c, d);
        agent_outer_leave(thread);
        if (block != NULL) {
            const struct unwind_regs caller = hot_caller_again();
            return record_alloc_slowly(caller.pc, caller.sp, caller.fp, block, size);
        }
    }
    return function_at(original)(size, b, c, d);
}

// As agent_on_throwing: the form that returns NULL is called, and if that fails the other one.
void *abi_hook_new(uint64_t size, uint64_t b, uint64_t c, uint64_t d, uint64_t original)
{
    struct agent_thread *thread = enter_at_once(OUR_FRAME);
    if (thread == NULL) {
        return new_slowly(size, b, c, d, original);
    }
    void *block = nothrow_of(original)(size, b, c, d);
    agent_outer_leave(thread);
    return LIKELY(block != NULL) ? agent_outer_record(thread, block, size)
                                 : function_at(original)(size, b, c, d);
}

void *abi_hook_realloc(uint64_t old, uint64_t size, uint64_t c, uint64_t d, uint64_t original)
{
    const struct unwind_regs caller = unwind_caller_regs();
    struct agent_thread *thread = agent_outer_thread(OUR_FRAME);
    if (thread == NULL) {
        return function_at(original)(old, size, c, d);
    }
    const struct agent_resizing resizing = agent_resize_begins((const void *)old, size);
    agent_outer_note(thread, OUR_FRAME);
    void *block = function_at(original)(old, size, c, d);
    agent_outer_leave(thread);
    agent_resize_ends(&resizing, &caller, block, false);
    return block;
}

int abi_hook_posix_memalign(
    uint64_t out, uint64_t alignment, uint64_t size, uint64_t d, uint64_t original)
{
    const struct unwind_regs caller = unwind_caller_regs();
    struct agent_thread *thread = agent_outer_enter(OUR_FRAME);
    const int result = (int)(uint64_t)function_at(original)(out, alignment, size, d);
    if (thread == NULL) {
        return result;
    }
    agent_outer_leave(thread);
    if (result == 0) {
        record_alloc(&caller, *(void *const *)out, size);
    }
    return result;
}

// Do the whole call.
static NOINLINE void
free_slowly(uint64_t block, uint64_t b, uint64_t c, uint64_t d, uint64_t original)
{
    struct agent_thread *thread = agent_outer_thread(OUR_FRAME);
    if (thread == NULL) {
        (void)function_at(original)(block, b, c, d);
        return;
    }
    if (block != 0 && !record_free_passes(&thread->pass, (const void *)block)) {
        record_free((const void *)block);
    }
    agent_outer_note(thread, OUR_FRAME);
    (void)function_at(original)(block, b, c, d);
    agent_outer_leave(thread);
}

// Do the call from where record_free_at_once has come to.
static NOINLINE void free_from(uint64_t block,
                               uint64_t b,
                               uint64_t c,
                               uint64_t original,
                               struct agent_thread *thread,
                               enum record_free_rest rest)
{
    record_free_finish(thread->state, (const void *)block, rest);
    agent_outer_note(thread, OUR_FRAME);
    (void)function_at(original)(block, b, c, 0);
    agent_outer_leave(thread);
}

// Functions that free have at most three arguments.
void abi_hook_free(uint64_t block, uint64_t b, uint64_t c, uint64_t d, uint64_t original)
{
    struct agent_thread *thread = thread_at_once();
    if (thread == NULL) {
        free_slowly(block, b, c, d, original);
        return;
    }
    if (LIKELY(block != 0) && !record_free_passes(&thread->pass, (const void *)block)) {
        const enum record_free_rest rest = record_free_at_once(thread->state, (const void *)block);
        if (rest != RECORD_FREE_NOTHING) {
            free_from(block, b, c, original, thread, rest);
            return;
        }
    }
    agent_outer_note(thread, OUR_FRAME);
    (void)function_at(original)(block, b, c, 0);
    agent_outer_leave(thread);
}
