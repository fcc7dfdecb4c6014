// SPDX-License-Identifier: MIT
// stacks: a million distinct call stacks in random order.
//
// Measures what a profiler keeps per stack. Every visit spells its number in base 4: each digit is
// one level of the call tree, and each level has four functions. The numbers come from a
// permutation of [0, stacks), so that each stack occurs once in every round, and hardly ever twice
// in a row. A pair is the malloc and free of one block at the end of one stack.

#include "workload.h"

#include <stdio.h>
#include <stdlib.h>

#define DIGIT_BITS 2
#define KINDS      (1 << DIGIT_BITS)

struct visit {
    uint32_t number;
    uint32_t levels;
};

static inline void descend(struct visit visit);

#define FRAME(n, bytes)                                                 \
    static __attribute__((noinline)) void frame_##n(struct visit visit) \
    {                                                                   \
        char local[bytes];                                              \
        workload_keep(local);                                           \
        descend(visit);                                                 \
        workload_keep(local);                                           \
    }
FRAME(0, 8)
FRAME(1, 24)
FRAME(2, 56)
FRAME(3, 120)

static void (*const g_frames[KINDS])(struct visit) = {frame_0, frame_1, frame_2, frame_3};

// Inlined into every frame function.
static inline __attribute__((always_inline)) void descend(struct visit visit)
{
    if (visit.levels == 0) {
        char *block = workload_alloc(64);
        block[0] = 1;
        workload_keep(block);
        free(block);
        return;
    }
    uint32_t kind = visit.number % KINDS;
    visit.number /= KINDS;
    visit.levels--;
    g_frames[kind](visit);
}

int main(int argc, char **argv)
{
    uint64_t stacks = 1000000;
    uint64_t rounds = 2;
    const struct workload_param params[] = {
        {"stacks", &stacks, 1, 1u << 30, "distinct stacks"},
        {"rounds", &rounds, 1, 1u << 30, "times that each is met"},
        {0},
    };
    workload_args(argc, argv, params);
    uint32_t levels = 1;
    while ((uint64_t)1 << (DIGIT_BITS * levels) < stacks) {
        levels++;
    }
    // This recurrence visits every number below a power of two once; numbers from `stacks` on are
    // skipped.
    const uint64_t mask = ((uint64_t)1 << (DIGIT_BITS * levels)) - 1;
    uint64_t begin = workload_now_ns();
    uint64_t number = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        for (uint64_t i = 0; i <= mask; i++) {
            number = (number * 1664525 + 1013904223) & mask;
            if (number < stacks) {
                g_frames[0]((struct visit){(uint32_t)number, levels});
            }
        }
    }
    uint64_t loop_ns = workload_now_ns() - begin;
    const struct workload_figure figures[] = {
        {"stacks_at_most", stacks}, {"depth", levels + 1}, {NULL, 0}};
    workload_report("stacks", stacks * rounds, loop_ns, figures);
    return 0;
}
