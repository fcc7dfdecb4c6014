// SPDX-License-Identifier: MIT
// program_pairs: which executables of two recordings are one program under different file names.
//
//   new: app-1.1 (main), helper         pair 1: app-1.1 and app-1.0
//   old: app-1.0 (main), helper         helper has the same file name on both sides
//
// Modules are matched by their file names (code_union.h). An executable whose file name the other
// recording lacks is matched by its role in the run. The main programs form a pair. If one other
// executable remains on each side, these two form a pair too. The main program is the program that
// the first process executed last, so a launcher that execs it does not count.
// Context: H; read-only once built. Failure: ERR_NO_MEMORY.
#pragma once

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/model/profile.h"

struct program_pairs {
    struct u32_vec
        numbers[SIDE_COUNT]; // owned; by module: the number of its pair, 0 if it has none
};

enum err program_pairs_build(const struct profile *new,
                             const struct profile *old,
                             struct program_pairs *out) MUST_USE;
void program_pairs_release(struct program_pairs *pairs);
