// SPDX-License-Identifier: MIT
// churn: random small blocks from a deep call tree with root frames that change at random.
//
// The hard case for a profiler that caches stacks: every descent takes another path near the root,
// so that the whole stack is new although most of its frames look the same.
//
//   worker -> root levels        `levels` frames, each one of `roots` functions, drawn per descent
//          -> middle             fixed functions, as many as `depth` needs
//          -> bottom             one frame that makes `burst` pairs
//          -> leaf               one of four functions, drawn per pair: free(old) and malloc(new)
//
// Exactly `depth` frames are between worker and malloc. All of them are real: the functions are
// called through a table, so none is inlined, and each uses its locals after the call, so none is a
// tail call. They differ in frame size and in saved registers, and one realigns its stack, so that
// the unwinder meets several kinds of rules. The number of distinct stacks is at most roots^levels
// * 4 per thread entry. With check=1 nothing is timed: the stack of every pair is taken with
// backtrace(3), and the result has the frames and distinct stacks that occurred.
//
// A pair frees a random one of `live` slots and fills it with a block of 16 to 270 bytes.

#include "workload.h"

#include <execinfo.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define DEPTH_MAX     1000
#define FRAME_KINDS   16
#define LEAF_KINDS    4
#define SEEN_BITS     20
#define SIZE_MIN      16
#define SIZE_SPAN     255
#define MIDDLE_STRIDE 7 // coprime to FRAME_KINDS: the middle visits every kind

struct churner {
    struct workload_random random;
    void **slots;
    uint32_t live;
    uint32_t burst;
    uint32_t levels;
    uint32_t roots;
    uint32_t depth;
    struct observer *observer; // NULL without check=1
    uint8_t path[DEPTH_MAX];   // frame kind of each level; level 0 is the bottom
};

// Distinct stacks seen with check=1, for one thread.
struct observer {
    uint64_t frames_min;
    uint64_t frames_max;
    uint64_t distinct;
    uint64_t names[1 << SEEN_BITS];
};

struct plan {
    uint64_t pairs;
    uint64_t depth;
    uint64_t threads;
    uint64_t live;
    uint64_t burst;
    uint64_t roots;
    uint64_t levels;
    uint64_t seed;
    uint64_t check;
};

static void observe(struct observer *observer)
{
    void *frames[DEPTH_MAX + 32];
    uint64_t count = (uint64_t)backtrace(frames, DEPTH_MAX + 32);
    uint64_t name = count;
    for (uint64_t i = 0; i < count; i++) {
        name = (name ^ (uint64_t)(uintptr_t)frames[i]) * 0x9e3779b97f4a7c15ULL;
        name ^= name >> 29;
    }
    observer->frames_min = count < observer->frames_min ? count : observer->frames_min;
    observer->frames_max = count > observer->frames_max ? count : observer->frames_max;
    const uint64_t mask = (1u << SEEN_BITS) - 1;
    for (uint64_t i = name & mask;; i = (i + 1) & mask) {
        if (observer->names[i] == name) {
            return;
        }
        if (!observer->names[i]) {
            observer->names[i] = name;
            observer->distinct++;
            if (observer->distinct > mask / 2) {
                (void)fprintf(stderr, "check=1 knows at most %llu stacks\n",
                              (unsigned long long)mask / 2);
                exit(1);
            }
            return;
        }
    }
}

static inline void exchange(struct churner *c)
{
    uint32_t slot = workload_random_below(&c->random, c->live);
    uint32_t bytes = SIZE_MIN + workload_random_below(&c->random, SIZE_SPAN);
    free(c->slots[slot]);
    char *block = workload_alloc(bytes);
    block[0] = 1;
    c->slots[slot] = block;
    if (c->observer) {
        observe(c->observer);
    }
}

#define LEAF(n, bytes)                                                \
    static __attribute__((noinline)) void leaf_##n(struct churner *c) \
    {                                                                 \
        char local[bytes];                                            \
        workload_keep(local);                                         \
        exchange(c);                                                  \
        workload_keep(local);                                         \
    }
LEAF(0, 8)
LEAF(1, 40)
LEAF(2, 88)
LEAF(3, 136)

static void (*const g_leaves[LEAF_KINDS])(struct churner *) = {leaf_0, leaf_1, leaf_2, leaf_3};

static void descend(struct churner *c, uint32_t level);

static __attribute__((noinline)) void bottom(struct churner *c)
{
    for (uint32_t i = 0; i < c->burst; i++) {
        g_leaves[workload_random_below(&c->random, LEAF_KINDS)](c);
    }
}

#define FRAME(n, align, bytes)                                                         \
    static __attribute__((noinline)) void frame_##n(struct churner *c, uint32_t level) \
    {                                                                                  \
        _Alignas(align) char local[bytes];                                             \
        workload_keep(local);                                                          \
        descend(c, level);                                                             \
        workload_keep(local);                                                          \
    }
FRAME(0, 8, 8)
FRAME(1, 8, 24)
FRAME(2, 8, 40)
FRAME(3, 8, 56)
FRAME(4, 8, 72)
FRAME(5, 8, 88)
FRAME(6, 8, 104)
FRAME(7, 8, 120)
FRAME(8, 8, 136)
FRAME(9, 8, 152)
FRAME(10, 8, 168)
FRAME(11, 8, 184)
FRAME(12, 8, 200)
FRAME(13, 8, 216)
FRAME(14, 8, 232)
FRAME(15, 64, 64) // realigns the stack, so its CFA is computed from rbp

static void (*const g_frames[FRAME_KINDS])(struct churner *, uint32_t) = {
    frame_0, frame_1, frame_2,  frame_3,  frame_4,  frame_5,  frame_6,  frame_7,
    frame_8, frame_9, frame_10, frame_11, frame_12, frame_13, frame_14, frame_15,
};

// The call from one level to the next, inlined into every frame function.
static inline __attribute__((always_inline)) void descend(struct churner *c, uint32_t level)
{
    if (level == 0) {
        bottom(c);
    } else {
        g_frames[c->path[level - 1]](c, level - 1);
    }
}

// The frames that `depth` counts: depth - 2 of g_frames, bottom and a leaf.
static __attribute__((noinline)) void churn(struct churner *c, uint64_t pairs)
{
    const uint32_t top = c->depth - 2;
    for (uint32_t level = 0; level < top; level++) {
        c->path[level] = (uint8_t)(level * MIDDLE_STRIDE % FRAME_KINDS);
    }
    for (uint64_t done = 0; done < pairs; done += c->burst) {
        for (uint32_t i = 1; i <= c->levels; i++) {
            c->path[top - i] = (uint8_t)workload_random_below(&c->random, c->roots);
        }
        descend(c, top);
    }
}

static void run_one(void *arg, uint32_t index)
{
    const struct plan *plan = arg;
    struct churner *c = workload_alloc(sizeof(*c));
    *c = (struct churner){
        .random = workload_random_from(plan->seed + index),
        .slots = calloc(plan->live, sizeof(void *)),
        .live = (uint32_t)plan->live,
        .burst = (uint32_t)plan->burst,
        .levels = (uint32_t)plan->levels,
        .roots = (uint32_t)plan->roots,
        .depth = (uint32_t)plan->depth,
    };
    if (!c->slots) {
        abort();
    }
    churn(c, plan->pairs);
    for (uint32_t i = 0; i < c->live; i++) {
        free(c->slots[i]);
    }
    free((void *)c->slots);
    free(c);
}

// Run the same walk and observe every stack; the result describes the stacks of a timed run.
static void check(const struct plan *plan)
{
    static struct observer observer = {.frames_min = UINT64_MAX};
    struct churner *c = workload_alloc(sizeof(*c));
    *c = (struct churner){
        .random = workload_random_from(plan->seed),
        .slots = calloc(plan->live, sizeof(void *)),
        .live = (uint32_t)plan->live,
        .burst = (uint32_t)plan->burst,
        .levels = (uint32_t)plan->levels,
        .roots = (uint32_t)plan->roots,
        .depth = (uint32_t)plan->depth,
        .observer = &observer,
    };
    if (!c->slots) {
        abort();
    }
    churn(c, plan->pairs);
    const struct workload_figure figures[] = {
        {"depth", plan->depth},
        {"frames_min", observer.frames_min},
        {"frames_max", observer.frames_max},
        {"stacks", observer.distinct},
        {NULL, 0},
    };
    workload_report("churn", plan->pairs, 0, figures);
}

int main(int argc, char **argv)
{
    struct plan plan = {
        .pairs = 5000000,
        .depth = 30,
        .threads = 1,
        .live = 1000,
        .burst = 64,
        .roots = 4,
        .levels = 3,
        .seed = 1,
    };
    const struct workload_param params[] = {
        {"pairs", &plan.pairs, 1, UINT64_MAX / 2, "malloc and free pairs of each thread"},
        {"depth", &plan.depth, 10, DEPTH_MAX, "frames between the worker and malloc"},
        {"threads", &plan.threads, 0, 4096, "threads; 0: one, beside one that sleeps"},
        {"live", &plan.live, 1, 1u << 31, "blocks alive at a time in each thread"},
        {"burst", &plan.burst, 1, 1u << 20, "pairs between two changes of the root frames"},
        {"roots", &plan.roots, 1, FRAME_KINDS, "functions to choose from at a root level"},
        {"levels", &plan.levels, 0, 8, "root levels that change"},
        {"seed", &plan.seed, 0, UINT64_MAX / 2, "of the random numbers"},
        {"check", &plan.check, 0, 1, "count frames and distinct stacks instead of timing"},
        {0},
    };
    workload_args(argc, argv, params);
    uint64_t stacks = LEAF_KINDS;
    for (uint64_t i = 0; i < plan.levels; i++) {
        stacks *= plan.roots;
    }
    if (plan.check) {
        check(&plan);
        return 0;
    }
    uint64_t loop_ns = workload_run_threads((uint32_t)plan.threads, run_one, &plan);
    const struct workload_figure figures[] = {
        {"threads", plan.threads},
        {"depth", plan.depth},
        {"stacks_at_most", stacks},
        {NULL, 0},
    };
    workload_report("churn", plan.pairs, loop_ns, figures);
    return 0;
}
