// SPDX-License-Identifier: MIT
// merged_stacks: how much of a recording has lost its own call stack (cairn record --max-memory).
//
// The recorder merges the rarest stacks below a caller, behind a pseudo frame (REC_CUT_MERGED).
// What one stack lacks is below its own callers. So the sum of what was merged below a function and
// all its callers bounds what any stack through it lacks. Context: H; pure. ERR_NO_MEMORY.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "recording/format/tables.h"

struct merged_stacks {
    uint64_t times; // that a stack was merged; 0: never, then all fields are 0
    uint64_t allocations;
    uint64_t allocated_bytes;
    uint64_t most_missing_allocations; // of any stack
    uint64_t most_missing_bytes;
};

enum err merged_stacks_of(const struct recording *recording, struct merged_stacks *out) MUST_USE;
