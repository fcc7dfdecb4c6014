// SPDX-License-Identifier: MIT
// python_chain: from one frame of CPython to the next one further out.
//
// Frames are linked by `previous`. Versions differ in how a chain says that another call of
// _PyEval_EvalFrameDefault runs the next frame, and in the variable that it names of that call's
// native frame, so that the frames can take its place:
//
//   3.10    each frame has a call of its own, with a cframe, a variable: two chains side by side
//
//     PyThreadState -> cframe -> cframe -> ...
//                 \--> frame --> frame --> ...
//
//   3.11    the outermost frame of a call is marked; a cframe leads to the innermost
//
//     PyThreadState -> cframe -> cframe -> ...       one for each call of the interpreter
//                        |         |
//                      frame     frame               Python calls Python without a native frame
//                      frame (entry)  ...
//
//   3.12 on     a variable is itself a frame of the chain, owned by the C stack
//
//     PyThreadState -> frame -> frame -> variable -> frame -> variable -> ...
//
// In 3.10 and 3.11 throw() puts frames of suspended generators into the chain, which no call runs.
// They count as frames of the call further out. In 3.10 their stack of values has a depth, and
// their next instruction waits for another generator. A trace function may let a frame that is run
// look so, and a signal handler may find one chain ahead of the other: then frames may be one call
// too far out. In 3.11 they are still marked, but `previous` is not the frame of the cframe further
// out. Each walk reads them again.
//
// Context: T; reads the calling thread's own frames.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "target/preload/python/python_layout.h"
#include "target/preload/python/python_memory.h"

// A frame on the stack, and the words that it was read from.
struct python_frame {
    uint64_t frame;  // its address; 0: none
    uint64_t cframe; // 3.10, 3.11: of its call
    uint64_t code;
    uint64_t instruction; // the last one that has begun; 3.10: f_lasti, and f_lineno above it
    uint64_t previous;
    uint64_t variable; // 3.12 on: of its call, if the next frame is another call's; else 0
    bool is_entry;     // 3.10, 3.11: the next frame is another call's
    bool has_facts;    // see python_frames.h
};

// Find the innermost frame of the thread whose PyThreadState is at `state`; frame 0: none.
void python_chain_begin(const struct python_layout *layout,
                        uint64_t state,
                        struct python_frame *innermost);

// Fill the rest of `at`, whose frame and cframe are known, and those two of the `next` frame (frame
// 0: none). False if it cannot be read.
bool python_chain_read(const struct python_layout *layout,
                       struct python_frame *at,
                       struct python_frame *next);

// Return the code object of a frame. From 3.14 on the reference to it has a tag.
ALWAYS_INLINE uint64_t python_chain_code(const struct python_layout *layout, uint64_t frame)
{
    return python_word(frame + layout->frame.code) & ~(uint64_t)3;
}

// Whether the frame after this one is another call's, as far as this one says; if `owner` is 0.
ALWAYS_INLINE bool python_chain_leaves(const struct python_layout *layout, uint64_t frame)
{
    return layout->frame.depth != 0 ? (int32_t)python_half(frame + layout->frame.depth) <= 0
                                    : python_byte(frame + layout->frame.is_entry) != 0;
}

// Whether `f`, whose words are as they were, leads to `outer` (NULL: to none).
bool python_chain_leads_to(const struct python_layout *layout,
                           const struct python_frame *f,
                           const struct python_frame *outer);

// Whether `f`, which is alive and was read before, holds the same words and leads to `outer` (NULL:
// to none).
ALWAYS_INLINE bool python_chain_is(const struct python_layout *layout,
                                   const struct python_frame *f,
                                   const struct python_frame *outer)
{
    if (((python_chain_code(layout, f->frame) ^ f->code) |
         (python_word(f->frame + layout->frame.instruction) ^ f->instruction) |
         (python_word(f->frame + layout->frame.previous) ^ f->previous)) != 0) {
        return false;
    }
    bool leaves = f->variable != 0;
    if (layout->frame.owner == 0) {
        leaves = python_chain_leaves(layout, f->frame);
        if (leaves != f->is_entry) {
            return false;
        }
        if (layout->frame.depth != 0 && leaves && outer != NULL) {
            return f->previous == outer->frame &&
                   python_word(f->cframe + layout->cframe.previous) == outer->cframe;
        }
    }
    return LIKELY(!leaves && outer != NULL && f->previous == outer->frame) ||
           python_chain_leads_to(layout, f, outer);
}
