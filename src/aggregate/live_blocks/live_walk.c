// SPDX-License-Identifier: MIT
#include "aggregate/live_blocks/live_walk.h"

#include "base/minmax.h"
#include "host/containers/vec.h"

struct walked_block {
    uint64_t address;
    struct live_block block;
};

DEFINE_VEC(walked_block_vec, struct walked_block);

static void pause_walk(struct live_walk *walk)
{
    const uint64_t before = walk->map != NULL ? walk->map->live_count : 0;
    const uint64_t changed = walk->pause(walk->pause_context);
    walk->is_gone = changed == LIVE_WALK_GONE;
    if (walk->is_gone) {
        return;
    }
    walk->changed_count += changed;
    const uint64_t after = walk->map != NULL ? walk->map->live_count : 0;
    // Farther than the map has grown in the pause: else the walk of one that grows has no end.
    walk->step = after > before ? 2 * (after - before) : 0;
    walk->since_pause = 0;
}

void live_walk_visit(struct live_walk *walk, uint64_t address, const struct live_block *block)
{
    walk->visit(walk->context, address, block);
    walk->block_count++;
    walk->since_pause++;
    if (walk->pause != NULL && walk->since_pause >= max_u64(walk->step, LIVE_WALK_STEP)) {
        pause_walk(walk);
    }
}

// Copy the next part of the map. Return what ends it in *out.
static enum err copy_part(const struct live_map *map,
                          struct live_map_position *position,
                          struct walked_block_vec *part,
                          enum live_step *out)
{
    struct walked_block next;
    walked_block_vec_clear(part);
    while ((*out = live_map_step(map, position, &next.address, &next.block)) == LIVE_STEP_BLOCK) {
        TRY(walked_block_vec_push(part, next));
    }
    return ERR_OK;
}

enum err live_walk_run(struct live_walk *walk, const struct live_map *map)
{
    CLEANUP(walked_block_vec_release) struct walked_block_vec part = {0};
    struct recent_seen seen = {0};
    walk->map = map;
    struct live_map_position position = {.seen = &seen};
    enum live_step end = LIVE_STEP_PART;
    while (end != LIVE_STEP_END && !walk->is_gone) {
        TRY(copy_part(map, &position, &part, &end));
        for (size_t i = 0; i < part.len && !walk->is_gone; i++) {
            live_walk_visit(walk, part.items[i].address, &part.items[i].block);
        }
    }
    walk->map = NULL;
    return ERR_OK;
}
