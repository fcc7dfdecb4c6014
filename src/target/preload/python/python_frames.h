// SPDX-License-Identifier: MIT
// python_frames: the frames of CPython on one thread, remembered from one walk to the next.
//
// A walk goes outwards from the innermost frame. Where it meets a remembered frame, it only
// compares the words that it read there before. Frames that hold all the way to the outermost one
// stay; those further in are replaced:
//
//   index       0      1     2  ...      known         count
//   frames    module  main   f  ...     | replaced by fresh ones |
//   inserts   their pcs and places, for the unwinder
//   facts     about their code, at the outermost frame of each code
//
// A frame's code may be freed when the frame has ended, and another one may get its memory. So the
// facts about a code are compared once in a walk, too.
//
// A frame is read only when a frame further in leads to it, so it is alive. Its memory was readable
// when it was read first.
//
// Owns: nothing; lives in one block of memory. Context: T, its thread only, under the guard. A walk
// that is left half way (longjmp out of a handler) leaves nothing remembered.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/preload/python/python_chain.h"
#include "target/preload/python/python_code.h"
#include "target/unwind/unwind.h"

#define PYTHON_FRAMES_MIN 1024u
#define PYTHON_FRAMES_MAX ((uint32_t)1 << 18)

struct python_frames {
    uint32_t capacity;
    uint32_t count;
    uint32_t same; // so many of the first ones are as they were at python_frames_taken()
    uint32_t fresh_count;
    struct python_frame *frames;
    struct unwind_insert *inserts;
    struct python_code_facts *facts; // of frames with has_facts
    struct python_frame *fresh;      // innermost first
    uint32_t *by_frame;              // index by address
    uint32_t *by_code;               // index of the outermost frame of a code
};

size_t python_frames_bytes(uint32_t capacity);

// Prepare `memory` of python_frames_bytes(); a power of two. Returns `memory` itself.
struct python_frames *python_frames_init(void *memory, uint32_t capacity);

// Walk from `innermost`, as python_chain_begin() fills it (frame 0: there is none). False: there is
// too little room, and nothing is remembered.
bool python_frames_walk(struct python_frames *p,
                        const struct python_layout *layout,
                        const struct python_frame *innermost);

// The frames of the last walk.
struct unwind_inserts python_frames_inserts(const struct python_frames *p);

// Count `same` from here.
void python_frames_taken(struct python_frames *p);
