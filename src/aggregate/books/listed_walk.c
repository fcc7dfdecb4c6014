// SPDX-License-Identifier: MIT
#include "aggregate/books/listed_walk.h"

static void pause_walk(struct listed_walk *walk)
{
    const uint64_t changed = walk->pause(walk->pause_context);
    walk->is_gone = changed == LISTED_WALK_GONE;
    walk->changed_count += walk->is_gone ? 0 : changed;
    walk->since_pause = 0;
}

void listed_walk_run(struct listed_walk *walk, const struct listed_block_vec *blocks)
{
    for (size_t i = 0; i < blocks->len && !walk->is_gone; i++) {
        walk->visit(walk->context, blocks->items + i);
        walk->block_count++;
        walk->since_pause++;
        if (walk->pause != NULL && walk->since_pause >= LISTED_WALK_STEP) {
            pause_walk(walk);
        }
    }
}
