// SPDX-License-Identifier: MIT
// live_walk: visits the live blocks of one process, while others are served.
//
// The blocks of a part of the map (live_map.h) are copied at once, which takes a fraction of a
// millisecond. They are visited a few thousand at a time, with a pause between. In a pause the map
// may change: each block that is there all the time is visited once, and of the others some are.
// Blocks at odd addresses may be missed then, or visited twice. After a pause in which the map has
// grown, twice as many blocks are visited before the next one, so that the walk of a process that
// grows as fast as it can ends. After a pause in which the process has gone, nothing is touched any
// more.
//
//   map     |   part 1   |   part 2   |  ...
//   copy    |............|
//   visits   ....|....|...               | is a pause
//
// Memory: 40 bytes for each block of a part; a part has some 27,000.
// Context: H, one thread. Failure: ERR_NO_MEMORY.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregate/live_blocks/live_map.h"
#include "base/err.h"

enum {
    LIVE_WALK_STEP = 4096 // blocks between two pauses: about a millisecond of work
};

#define LIVE_WALK_GONE UINT64_MAX

struct live_walk {
    void (*visit)(void *context, uint64_t address, const struct live_block *block);
    void *context;
    // Serve others. Return how many live blocks of the process have changed meanwhile, at most;
    // LIVE_WALK_GONE: it is not there any more. NULL: no pauses.
    uint64_t (*pause)(void *context);
    void *pause_context;
    // Results, which several walks may add up; zeroed before.
    uint64_t block_count;   // visited
    uint64_t changed_count; // in pauses
    bool is_gone;
    // Of the walk itself; zeroed before.
    const struct live_map *map; // that is visited; NULL: none
    uint64_t since_pause;       // blocks
    uint64_t step;              // until the next pause, if more than LIVE_WALK_STEP
};

// Visit one block, and pause after each LIVE_WALK_STEP of them, or more as described above.
void live_walk_visit(struct live_walk *walk, uint64_t address, const struct live_block *block);

// Visit all blocks of a map, unless the process goes.
enum err live_walk_run(struct live_walk *walk, const struct live_map *map) MUST_USE;
