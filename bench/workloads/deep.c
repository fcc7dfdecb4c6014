// SPDX-License-Identifier: MIT
// deep: random small blocks at the bottom of a deep recursion, as parsers and tree walks make them.
//
// A pair frees a random one of `live` slots and fills it with a block of 16 to 270 bytes. Between
// two pairs the recursion returns over up to `swing` frames, at random, and descends again by calls
// that are drawn from two. So the changed part does not depend on the depth of the stack.

#include "workload.h"

#include <stdlib.h>

#define SIZE_MIN  16
#define SIZE_SPAN 255
#define LIVE_MAX  4096

struct deep {
    uint64_t pairs;
    uint64_t depth;
    uint64_t swing;
    uint64_t live;
    uint64_t turn; // the level from which it descends again
    struct workload_random random;
    void *slots[LIVE_MAX];
};

static __attribute__((noinline)) void bottom(struct deep *d)
{
    void **slot = &d->slots[workload_random_below(&d->random, (uint32_t)d->live)];
    free(*slot);
    *slot = malloc(SIZE_MIN + workload_random_below(&d->random, SIZE_SPAN));
    d->turn = d->depth - workload_random_below(&d->random, (uint32_t)d->swing + 1);
    d->pairs--;
}

static __attribute__((noinline)) uint64_t descend(struct deep *d, uint64_t level)
{
    uint64_t sum = 0;
    do {
        if (level == d->depth) {
            bottom(d);
        } else if (workload_random_below(&d->random, 2) != 0) {
            sum += descend(d, level + 1);
        } else {
            sum ^= descend(d, level + 1);
        }
    } while (d->pairs > 0 && level <= d->turn);
    return sum + 1;
}

int main(int argc, char **argv)
{
    static struct deep deep = {.pairs = 2000000, .depth = 5000, .swing = 4, .live = 1000};
    const struct workload_param params[] = {
        {"pairs", &deep.pairs, 1, UINT64_MAX / 2, "pairs"},
        {"depth", &deep.depth, 8, 150000, "frames of the recursion"},
        {"swing", &deep.swing, 0, 8, "frames that change between two pairs, at most"},
        {"live", &deep.live, 1, LIVE_MAX, "blocks alive at a time"},
        {},
    };
    workload_args(argc, argv, params);
    deep.random = workload_random_from(1);
    const uint64_t pairs = deep.pairs;
    const uint64_t started_ns = workload_now_ns();
    uint64_t sum = descend(&deep, 0);
    workload_keep(&sum);
    const uint64_t loop_ns = workload_now_ns() - started_ns;
    const struct workload_figure figures[] = {{"depth", deep.depth}, {NULL, 0}};
    workload_report("deep", pairs, loop_ns, figures);
    return 0;
}
