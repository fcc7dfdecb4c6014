// SPDX-License-Identifier: MIT
#include "target/preload/python/python_stack.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/page_alloc.h"
#include "base/sys.h"
#include "target/preload/python/python_chain.h"
#include "target/preload/python/python_code.h"
#include "target/preload/python/python_frames.h"
#include "target/preload/python/python_layout.h"
#include "target/preload/python/python_memory.h"
#include "thread_way.h"

static struct page_budget g_memory = {.limit_bytes = (uint64_t)128 << 20}; // of all threads

// Written once, at the start, before the interpreter runs.
static struct {
    const struct python_layout *layout; // NULL: no interpreter
    uint64_t runtime;
} g_python;

// Note the first version, but a refused one rather than one that is read.
static void note_version(struct session_header *session, uint32_t version)
{
    uint32_t seen = 0;
    // Relaxed: the word is all there is.
    while (!atomic_compare_exchange_weak_explicit(&session->python_version, &seen, version,
                                                  memory_order_relaxed, memory_order_relaxed)) {
        if (seen != 0 && (version & SESSION_PYTHON_REFUSED) <= (seen & SESSION_PYTHON_REFUSED)) {
            return;
        }
    }
}

// Whether the interpreter is built as the layout says. From 3.13 on _PyRuntime begins with numbers
// for debuggers: a text, the version, whether threads run without a common lock (then objects are
// larger), the size of _PyRuntime, and the place of the thread that finalizes.
static bool is_built_so(const struct python_layout *layout, uint64_t runtime)
{
    enum {
        FIRST_WITH_NUMBERS = 0x030d,
        VERSION = 1,
        IS_FREE_THREADED = 2,
        FINALIZING = 4,
    };
    return layout->version < FIRST_WITH_NUMBERS ||
           (python_word(runtime + VERSION * sizeof(uint64_t)) >> 16 == layout->version &&
            python_word(runtime + IS_FREE_THREADED * sizeof(uint64_t)) == 0 &&
            python_word(runtime + FINALIZING * sizeof(uint64_t)) == layout->runtime.finalizing);
}

void python_stack_begin(struct session_header *session,
                        uint64_t runtime,
                        uint64_t version_place,
                        uint32_t older)
{
    if (g_python.layout != NULL || (runtime == 0 && older == 0)) {
        return;
    }
    const uint32_t version =
        version_place != 0 ? (uint32_t)python_word(version_place) >> 16 : older;
    const struct python_layout *layout = python_layout_of(version);
    if (layout == NULL || runtime == 0 || !is_built_so(layout, runtime) || !python_code_prepare()) {
        note_version(session, version | SESSION_PYTHON_REFUSED);
        return;
    }
    note_version(session, version);
    g_python.runtime = runtime;
    g_python.layout = layout;
}

// Return the state of the calling thread, 0 if it has none that may be read.
static uint64_t own_state(void)
{
    const struct python_layout *l = g_python.layout;
    if (l == NULL || python_half(g_python.runtime + l->runtime.has_thread_key) == 0) {
        return 0;
    }
    const uint32_t key = python_half(g_python.runtime + l->runtime.thread_key);
    const uint64_t state = thread_way_specific(key);
    const uint64_t finalizing = python_word(g_python.runtime + l->runtime.finalizing);
    return finalizing == 0 || finalizing == state ? state : 0;
}

void python_stack_release(struct python_frames **own)
{
    struct python_frames *frames = *own;
    *own = NULL;
    if (frames != NULL) {
        page_budget_free(&g_memory, frames, python_frames_bytes(frames->capacity));
    }
}

// Replace the memory by a larger one, in which nothing is remembered.
static bool grow(struct python_frames **own)
{
    const uint32_t capacity = *own != NULL ? (*own)->capacity * 4 : PYTHON_FRAMES_MIN;
    void *memory = capacity <= PYTHON_FRAMES_MAX
                       ? page_budget_alloc(&g_memory, python_frames_bytes(capacity))
                       : NULL;
    if (memory == NULL) {
        return false;
    }
    struct python_frames *old = *own;
    const uint64_t blocked = signals_block(); // a handler may leave by longjmp
    *own = python_frames_init(memory, capacity);
    signals_restore(blocked);
    python_stack_release(&old);
    return true;
}

uint64_t python_stack_again(struct python_frames **own,
                            const struct unwind_thread *thread,
                            const struct unwind_regs *caller)
{
    const uint64_t state = own_state();
    if (state == 0 || (*own == NULL && !grow(own))) {
        return 0;
    }
    struct python_frame innermost;
    python_chain_begin(g_python.layout, state, &innermost);
    while (!python_frames_walk(*own, g_python.layout, &innermost)) {
        if (!grow(own)) {
            return 0;
        }
    }
    const struct unwind_inserts inserts = python_frames_inserts(*own);
    return inserts.count > 0 ? unwind_thread_mixed_again(thread, caller, &inserts) : 0;
}

void python_stack_mix(struct python_frames *own,
                      struct unwind_thread *thread,
                      struct unwind_walk *walk)
{
    if (own == NULL || (walk->flags & UNWIND_NOT_REMEMBERED) != 0) {
        return;
    }
    const struct unwind_inserts inserts = python_frames_inserts(own);
    if (inserts.count > 0) {
        unwind_thread_mix(thread, walk, &inserts);
        python_frames_taken(own);
    }
}
