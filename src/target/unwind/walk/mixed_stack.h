// SPDX-License-Identifier: MIT
// mixed_stack: a remembered walk with the frames of an interpreted language in it.
//
// It is made outermost first, one native frame after the other. A native frame gives its own frame,
// or, if frames of the language have their place in it, these:
//
//   native frames     entry    main    eval              list_append   (outermost first)
//   inserts                            f1  f2  f3
//   result            entry    main    f1  f2  f3        list_append
//
// Where each native frame's part begins is remembered. So the next mix begins with the first part
// that can have changed, and a deep stack costs what changed of it. A stack that is deeper than
// max_frames is cut as frame_sink.h says.
//
// Owns: nothing; lives in one block of memory, which the unwind_thread owns. Context: T, its thread
// only. A mix that is left half way (longjmp out of a handler) leaves nothing to begin with.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "target/unwind/unwind.h"
#include "target/unwind/walk/frame_sink.h"
#include "target/unwind/walk/walk_cache.h"

// Where the part of a native frame begins.
struct mixed_part {
    uint32_t frame;  // of the result
    uint32_t insert; // of the inserts
};

struct mixed_stack {
    uint32_t capacity;     // of `frames`, and of `parts` but one
    uint32_t count;        // of the result, before it is cut
    uint32_t native_count; // parts[native_count] is their end; 0: nothing is remembered
    uint64_t name;         // of the last result
    struct cut_stack cut;
    struct unwind_frame *frames;
    struct mixed_part *parts;
};

size_t mixed_stack_bytes(uint32_t capacity, uint32_t max_frames);

// Prepare `memory` of mixed_stack_bytes(). Returns `memory` itself.
struct mixed_stack *mixed_stack_init(void *memory, uint32_t capacity, uint32_t max_frames);

// Mix `inserts` into the walk that `r` remembers, on a stack that ends at `top`. Its first
// `native_same` frames are those of the last mix. Returns the index of the first frame of the
// result that may have changed; UINT32_MAX if there is too little room: then nothing is remembered.
uint32_t mixed_stack_make(struct mixed_stack *mixed,
                          const struct walk_cache *r,
                          uint64_t top,
                          uint32_t native_same,
                          const struct unwind_inserts *inserts);

// Fill `walk` with the mixed stack, cut if it is deeper than max_frames. `changed` is from
// mixed_stack_make. Of the walk's flags set only UNWIND_CUT.
void mixed_stack_result(struct mixed_stack *mixed,
                        uint32_t max_frames,
                        uint32_t changed,
                        struct unwind_walk *walk);

// Return the name of the last result; 0 if nothing is remembered.
ALWAYS_INLINE uint64_t mixed_stack_name(const struct mixed_stack *mixed)
{
    return mixed->native_count > 0 ? mixed->name : 0;
}
