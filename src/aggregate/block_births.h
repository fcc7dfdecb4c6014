// SPDX-License-Identifier: MIT
// block_births: blocks that were allocated after the latest peak, although their births do not show
// that: those of about its time. Part of block_list.h.
//
// A block is named by a hash. Each was allocated when the latest peak had some number. With a new
// peak only those of that number and later ones matter.
//
// Several blocks may have one hash: of one address, size and row, and with births that words state
// as equal. They lived one after the other. So if one more of them dies than was allocated after
// the peak, the first one to die was live at the peak:
//
//   allocated before the peak, freed at 7      takes the birth    was not at the peak, so far
//   allocated after it, freed at 9             none is left       the one of 7 was at the peak
//
// Memory: at most BIRTHS_MAX births of 16 bytes, and as many sums. Beyond that blocks are counted
// as lost: they then appear as live at the peak. A zeroed object is empty. Context: H. Failure:
// ERR_NO_MEMORY.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/vec.h"

#define BIRTHS_MAX (1u << 22)

struct block_birth {
    uint64_t hash;
    uint64_t peak_number;
};
DEFINE_VEC(block_birth_vec, struct block_birth);

// All with one hash.
struct equal_births {
    uint32_t left;
    uint64_t first_death_ms; // of the blocks that took one
};
DEFINE_VEC(equal_births_vec, struct equal_births);

struct block_births {
    struct block_birth_vec items;
    struct equal_births_vec sums;
    struct map_u64 index; // hash -> index in `sums`
    uint64_t lost;
};

#define DEATH_NEVER UINT64_MAX

void block_births_release(struct block_births *births);

enum err block_births_add(struct block_births *births, uint64_t hash, uint64_t peak_number)
    MUST_USE;

// A block with that hash died at *death_ms, or never. Return whether it was allocated after the
// peak. If not, and *death_ms is another time now, it was, but an equal one that died then was not.
bool block_births_take(struct block_births *births, uint64_t hash, uint64_t *death_ms);

// A new peak has this number: forget those of earlier ones. Blocks that took one died before it.
enum err block_births_follow(struct block_births *births, uint64_t peak_number) MUST_USE;
