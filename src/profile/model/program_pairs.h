// SPDX-License-Identifier: MIT
// program_pairs: which executables of two recordings are one program under different names.
//
//   new: app-1.1 (main), helper         pair 1: app-1.1 and app-1.0
//   old: app-1.0 (main), helper         helper is known by its file name on both sides
//
// Modules are matched by their file names (code_union.h). An executable whose file name the other
// recording does not have is matched by its part in the run: the main program of one recording is
// that of the other, and what one executable alone remains on each side is one program too. The
// main program is what the first process ran last, so that a launcher which execs it does not
// count. Context: H; read-only once built. Failure: ERR_NO_MEMORY.
#pragma once

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/model/code_union.h"

struct program_pairs {
    struct u32_vec
        numbers[SIDE_COUNT]; // owned; by module: the number of its pair, 0 if it has none
};

enum err program_pairs_build(const struct profile *new,
                             const struct profile *old,
                             struct program_pairs *out) MUST_USE;
void program_pairs_release(struct program_pairs *pairs);
