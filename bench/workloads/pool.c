// SPDX-License-Identifier: MIT
// pool: workers that take each other's tasks, so most blocks are freed by another thread than their
// allocator, while many are alive.
//
// `shelves` of SHELF_BLOCKS blocks are shared. A task takes one shelf and replaces blocks on it,
// from eight frames of stack; a worker that finds a shelf taken tries the next one. A pair is one
// block's free and the malloc of the next one in its place.

#include "workload.h"

#include <stdatomic.h>
#include <stdlib.h>

#define SHELF_BLOCKS 1024u
#define TASK_PAIRS   64u
#define FRAMES       8u

struct shelf {
    _Alignas(64) _Atomic uint32_t is_taken;
    void *blocks[SHELF_BLOCKS];
};

struct plan {
    uint64_t pairs;
    uint64_t threads;
    uint64_t shelf_count;
    struct shelf *shelves;
};

static __attribute__((noinline)) void replace(void **block, uint64_t size_bytes, uint32_t frames)
{
    if (frames > 0) {
        replace(block, size_bytes, frames - 1);
        workload_keep(block); // no tail call
        return;
    }
    free(*block);
    *block = workload_alloc(size_bytes);
}

static struct shelf *take_shelf(const struct plan *plan, uint64_t at)
{
    for (;; at = (at + 1) % plan->shelf_count) {
        struct shelf *shelf = plan->shelves + at;
        if (atomic_exchange_explicit(&shelf->is_taken, 1, memory_order_acquire) == 0) {
            return shelf;
        }
    }
}

static void run_one(void *arg, uint32_t index)
{
    const struct plan *plan = arg;
    struct workload_random random = workload_random_from(index);
    for (uint64_t done = 0; done < plan->pairs; done += TASK_PAIRS) {
        const uint32_t wanted = (uint32_t)plan->shelf_count;
        struct shelf *shelf = take_shelf(plan, workload_random_below(&random, wanted));
        for (uint32_t i = 0; i < TASK_PAIRS && done + i < plan->pairs; i++) {
            const uint64_t size_bytes = 16 + workload_random_below(&random, 496);
            replace(shelf->blocks + workload_random_below(&random, SHELF_BLOCKS), size_bytes,
                    FRAMES);
        }
        atomic_store_explicit(&shelf->is_taken, 0, memory_order_release);
    }
}

int main(int argc, char **argv)
{
    struct plan plan = {.pairs = 5000000, .threads = 4, .shelf_count = 185};
    const struct workload_param params[] = {
        {"pairs", &plan.pairs, 1, UINT64_MAX / 2, "free and malloc pairs of each thread"},
        {"threads", &plan.threads, 0, 4096, "workers; 0: one, beside a thread that sleeps"},
        {"shelves", &plan.shelf_count, 1, 1u << 20, "of 1024 blocks; more than threads"},
        {0},
    };
    workload_args(argc, argv, params);
    plan.shelves = aligned_alloc(64, plan.shelf_count * sizeof(struct shelf));
    if (!plan.shelves) {
        abort();
    }
    for (uint64_t i = 0; i < plan.shelf_count; i++) {
        plan.shelves[i] = (struct shelf){0};
    }
    uint64_t loop_ns = workload_run_threads((uint32_t)plan.threads, run_one, &plan);
    const struct workload_figure figures[] = {{"threads", plan.threads}, {NULL, 0}};
    workload_report("pool", plan.pairs, loop_ns, figures);
    return 0;
}
