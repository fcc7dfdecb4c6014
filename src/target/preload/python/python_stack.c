// SPDX-License-Identifier: MIT
#include "target/preload/python/python_stack.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "target/preload/python/python_code.h"
#include "target/preload/python/python_layout.h"
#include "target/preload/python/python_memory.h"
#include "thread_way.h"

enum {
    FRAMES_MAX = 1 << 16
};

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

void python_stack_begin(struct session_header *session, uint64_t runtime, uint64_t version_place)
{
    if (g_python.layout != NULL || runtime == 0) {
        return;
    }
    const uint32_t version = version_place != 0 ? (uint32_t)python_word(version_place) >> 16 : 0;
    const struct python_layout *layout = python_layout_of(version);
    if (layout == NULL || !python_code_prepare()) {
        note_version(session, version | SESSION_PYTHON_REFUSED);
        return;
    }
    note_version(session, version);
    g_python.runtime = runtime;
    g_python.layout = layout;
}

// The next frame to give.
struct python_stack {
    const struct python_layout *layout;
    uint64_t cframe;
    uint64_t frame;
    uint32_t given;
};

// Move to the first frame of `cframe` or of one further out; false if there is none.
static bool enter_cframe(struct python_stack *s, uint64_t cframe)
{
    for (; cframe != 0 && s->given < FRAMES_MAX; s->given++) {
        if (cframe % sizeof(uint64_t) != 0 ||
            !python_memory_holds(cframe, s->layout->cframe.bytes)) {
            return false;
        }
        s->cframe = cframe;
        s->frame = python_word(cframe + s->layout->cframe.frame);
        if (s->frame != 0) {
            return true;
        }
        cframe = python_word(cframe + s->layout->cframe.previous);
    }
    return false;
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
    const bool has_lock = python_word(g_python.runtime + l->runtime.current) == state;
    return has_lock || python_word(g_python.runtime + l->runtime.finalizing) == 0 ? state : 0;
}

static bool next_frame(void *context, struct unwind_insert *out)
{
    struct python_stack *s = context;
    const struct python_layout *l = s->layout;
    if (s->frame == 0 || s->given++ == FRAMES_MAX || s->frame % sizeof(uint64_t) != 0 ||
        !python_memory_holds(s->frame, l->frame.bytes)) {
        return false;
    }
    out->place = s->cframe;
    out->pc = python_code_pc(l, python_word(s->frame + l->frame.code),
                             python_word(s->frame + l->frame.instruction));
    const bool is_entry = python_byte(s->frame + l->frame.is_entry) != 0;
    s->frame = is_entry ? 0 : python_word(s->frame + l->frame.previous);
    if (s->frame == 0 && !enter_cframe(s, python_word(s->cframe + l->cframe.previous))) {
        s->frame = 0;
    }
    return out->pc != 0;
}

void python_stack_mix(struct unwind_thread *thread, struct unwind_walk *walk)
{
    const uint64_t state = own_state();
    struct python_stack stack = {.layout = g_python.layout};
    if (state != 0 && state % sizeof(uint64_t) == 0 &&
        python_memory_holds(state + stack.layout->thread.cframe, sizeof(uint64_t)) &&
        enter_cframe(&stack, python_word(state + stack.layout->thread.cframe))) {
        unwind_thread_mix(thread, walk, next_frame, &stack);
    }
}
