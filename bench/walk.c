// SPDX-License-Identifier: MIT
// walk: measures the nanoseconds of one stack walk against the depth of the stack and the changes
// since the last walk.
//
//   unchanged   the same call again: the stack is only verified
//   leaf        another innermost function each time
//   root        another outermost function each time: all frames keep their place and return
//               address, but every node is new
//   full        by a new thread: nothing cached but the rules, the whole stack unknown
//
// The time of a descent without a walk is measured too and subtracted. Each figure is the median of
// ROUNDS, with the smallest and largest in parentheses. Links the code of the preload library.
// Prints a Markdown table. Exit status 1 if a walk does not reach the required depth.

#include "target/unwind/unwind.h"
#include "workload.h"

#include <stdio.h>
#include <string.h>

#define CAPACITY 1024u
#define ROUNDS   7
#define WALKS    40000u

enum change {
    CHANGE_NOTHING,
    CHANGE_LEAF,
    CHANGE_ROOT,
    CHANGE_ALL,
    CHANGE_COUNT
};

struct walker {
    struct unwind_thread *thread;
    void *memory;
    uint32_t repeats; // walks at the bottom of one descent
    uint32_t depth;
    enum change change;
    bool is_walking; // false: only descend, to measure the cost of the descent
};

struct sample {
    double ns[ROUNDS];
};

// Represents the hook: the walk begins with its caller. Taking the address of its frame gives it a
// frame pointer.
static __attribute__((noinline)) void hook(struct walker *w)
{
    if (!w->is_walking) {
        return;
    }
    if (w->change == CHANGE_ALL) {
        w->thread = unwind_thread_init(w->memory, CAPACITY, CAPACITY);
    }
    struct unwind_regs regs = unwind_caller_regs();
    struct unwind_walk walk;
    unwind_thread_walk(w->thread, &regs, &walk);
    if (walk.count < w->depth || walk.flags & UNWIND_UNFINISHED) {
        (void)fprintf(stderr, "a walk of %u frames has flags %#x, but %u frames were to be found\n",
                      walk.count, walk.flags, w->depth);
        exit(1);
    }
}

#define FRAME(name, bytes, call)                                                 \
    static __attribute__((noinline)) void name(struct walker *w, uint32_t level) \
    {                                                                            \
        char local[bytes];                                                       \
        workload_keep(local);                                                    \
        call;                                                                    \
        workload_keep(local);                                                    \
    }
FRAME(leaf_even, 24, (void)level; hook(w))
FRAME(leaf_odd, 56, (void)level; hook(w))

static __attribute__((noinline)) void bottom(struct walker *w)
{
    for (uint32_t i = 0; i < w->repeats; i++) {
        if (w->change == CHANGE_LEAF && i % 2) {
            leaf_odd(w, 0);
        } else {
            leaf_even(w, 0);
        }
    }
}

static void step(struct walker *w, uint32_t level);
FRAME(middle_small, 40, step(w, level))
FRAME(middle_large, 200, step(w, level))
FRAME(root_even, 72, step(w, level))
FRAME(root_odd, 72, __asm__ volatile("nop"); step(w, level))

static inline __attribute__((always_inline)) void step(struct walker *w, uint32_t level)
{
    if (level == 0) {
        bottom(w);
    } else if (level % 3) {
        middle_small(w, level - 1);
    } else {
        middle_large(w, level - 1);
    }
}

static double time_descents(struct walker *w)
{
    const uint32_t descents = WALKS / w->repeats;
    // Root, bottom and leaf are frames too; level 0 is the last middle frame.
    const uint32_t levels = w->depth - 4;
    uint64_t begin = workload_now_ns();
    for (uint32_t i = 0; i < descents; i++) {
        if (w->change == CHANGE_ROOT && i % 2) {
            root_odd(w, levels);
        } else {
            root_even(w, levels);
        }
    }
    return (double)(workload_now_ns() - begin) / (descents * (double)w->repeats);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(struct walker *w, struct sample *out)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        w->is_walking = false;
        double without = time_descents(w);
        w->is_walking = true;
        out->ns[i] = time_descents(w) - without;
    }
    qsort(out->ns, ROUNDS, sizeof(out->ns[0]), compare);
}

int main(void)
{
    static const uint32_t depths[] = {10, 20, 30, 60, 100, 150, 250};
    struct walker w = {.memory = calloc(1, unwind_thread_bytes(CAPACITY, CAPACITY))};
    if (!w.memory) {
        workload_out_of_memory();
    }
    w.thread = unwind_thread_init(w.memory, CAPACITY, CAPACITY);
    (void)printf("| frames | unchanged | leaf changed | root changed | full |\n");
    (void)printf("|--:|--:|--:|--:|--:|\n");
    for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
        w.depth = depths[i];
        (void)printf("| %u |", depths[i]);
        for (w.change = 0; w.change < CHANGE_COUNT; w.change++) {
            struct sample sample;
            w.repeats = w.change == CHANGE_ROOT ? 1 : 1000;
            measure(&w, &sample);
            (void)printf(" %.0f (%.0f to %.0f) |", sample.ns[ROUNDS / 2], sample.ns[0],
                         sample.ns[ROUNDS - 1]);
        }
        (void)printf("\n");
    }
    free(w.memory);
    return 0;
}
