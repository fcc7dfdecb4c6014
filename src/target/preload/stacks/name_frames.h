// SPDX-License-Identifier: MIT
// name_frames: frames that represent names given by the program, not code: "[pool nodes]".
//
// Such a frame ends a stack at its leaf, so everything that handles stacks handles pools and events
// too. Its pc is an address that code cannot have. Its module contains that pc alone, and its path
// is the name.
//
//   pc = NAME_FRAME_BASE + index * NAME_FRAME_STEP + NAME_FRAME_STEP / 2
//
// The process has one table of fixed size, which only grows. A thread that finds a name that
// another thread is about to write writes the same text, so no thread waits. When the table is
// full, all further names of a kind share one entry. Context: T; no locks, signal handlers
// included.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "target/unwind/unwind.h"

#define NAME_FRAME_BASE 0x4e61000000000000ULL // not canonical on any machine
#define NAME_FRAME_STEP 16u
#define NAME_FRAMES_MAX 256u
#define NAME_BYTES_MAX  47u

enum name_kind {
    NAME_POOL = 0,
    NAME_EVENT = 1,
};

// Return the pc of the frame for a name of that kind. The name is truncated to NAME_BYTES_MAX.
uint64_t name_frame_pc(enum name_kind kind, const char *name);

// Find the module of such a pc; false for any other pc.
bool name_frame_module(uint64_t pc, struct unwind_module *out);
