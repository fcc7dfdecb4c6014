// SPDX-License-Identifier: MIT
// name_frames: frames that are no code but names which the program gave: "[pool nodes]".
//
// Such a frame ends a stack at its leaf, so that all that speaks of stacks speaks of pools and
// events too. Its pc is one that no code can have; its module, whose path is the name, holds that
// pc alone.
//
//   pc = NAME_FRAME_BASE + index * NAME_FRAME_STEP + NAME_FRAME_STEP / 2
//
// The table is the process's, fixed, and only grows. Who finds a name that another thread is about
// to write writes the same text: nobody waits. When it is full, names share one entry for each
// kind. Context: T; no locks, signal handlers included.
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

// The pc of the frame for a name of that kind; of a longer one than NAME_BYTES_MAX the rest is cut.
uint64_t name_frame_pc(enum name_kind kind, const char *name);

// The module of such a pc; false for any other.
bool name_frame_module(uint64_t pc, struct unwind_module *out);
