// SPDX-License-Identifier: MIT
// listed_walk: visits listed blocks, while others are served.
//
// After each LISTED_WALK_STEP blocks there is a pause, in which the process may change: the list
// stays. After a pause in which the process has gone, nothing is touched any more.
// Context: H, one thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregate/books/listed_block.h"

enum {
    LISTED_WALK_STEP = 4096 // blocks between two pauses: about a millisecond of work
};

#define LISTED_WALK_GONE UINT64_MAX

struct listed_walk {
    void (*visit)(void *context, const struct listed_block *block);
    void *context;
    // Serve others. Return how many live blocks of the process have changed meanwhile, at most;
    // LISTED_WALK_GONE: it is not there any more. NULL: no pauses.
    uint64_t (*pause)(void *context);
    void *pause_context;
    // Results, which several walks may add up; zeroed before.
    uint64_t block_count;   // visited
    uint64_t changed_count; // in pauses
    bool is_gone;
    uint64_t since_pause; // blocks; of the walk itself
};

// Visit all blocks, unless the process goes.
void listed_walk_run(struct listed_walk *walk, const struct listed_block_vec *blocks);
