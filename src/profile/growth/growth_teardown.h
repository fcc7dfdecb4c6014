// SPDX-License-Identifier: MIT
// growth_teardown: when a process begins to free nearly all that it holds, because it ends.
//
//   live  ____/`````|\   the destructors of caches, queues and maps run: nothing is left
//                   ^ teardown
//
// What grew until then grew without bound as far as the run shows, although nothing was leaked.
// A teardown is in the last thirty-second of the process's life, and frees at least half.
// Context: H; pure. Only the processes that allocated most are looked at.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/model/profile.h"

// The slice after the last one of a process. `left`: when its blocks left the heap, or REC_NONE.
size_t growth_process_end(const struct recording *recording, uint32_t process, uint32_t left)
    MUST_USE;

// By process: the slice in which its teardown begins, REC_NONE without one. ERR_NO_MEMORY.
enum err growth_teardown_find(const struct profile *profile, struct u32_vec *out) MUST_USE;

// What a row held in slice `teardown` of what came before: blocks freed then, later or never.
struct growth_held {
    uint64_t bytes;
    uint64_t blocks;
};
struct growth_held
growth_teardown_held(const struct recording *recording, uint32_t row, uint32_t teardown) MUST_USE;
