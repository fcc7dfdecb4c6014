// SPDX-License-Identifier: MIT
// handover: producers and consumers; every block is freed by another thread than its allocator.
//
// Thread-local bookkeeping does not help here. Each of `couples` producers fills its own ring with
// blocks of 16 to 270 bytes; the single consumer of that ring frees them. A thread that finds its
// ring full or empty yields the processor. A pair is one block's malloc and free.

#include "workload.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define RING_BLOCKS 1024u // power of two

struct ring {
    _Alignas(64) _Atomic uint64_t written; // producer, release; consumer acquires
    _Alignas(64) _Atomic uint64_t taken;   // consumer, release; producer acquires
    _Alignas(64) void *blocks[RING_BLOCKS];
};

struct plan {
    uint64_t pairs;
    uint64_t couples;
    struct ring *rings; // one per couple
};

static __attribute__((noinline)) void produce(struct ring *ring, uint64_t pairs, uint64_t seed)
{
    struct workload_random random = workload_random_from(seed);
    for (uint64_t i = 0; i < pairs; i++) {
        while (i - atomic_load_explicit(&ring->taken, memory_order_acquire) == RING_BLOCKS) {
            sched_yield();
        }
        char *block = workload_alloc(16 + workload_random_below(&random, 255));
        block[0] = 1;
        ring->blocks[i % RING_BLOCKS] = block;
        atomic_store_explicit(&ring->written, i + 1, memory_order_release);
    }
}

static __attribute__((noinline)) void consume(struct ring *ring, uint64_t pairs)
{
    for (uint64_t i = 0; i < pairs; i++) {
        while (atomic_load_explicit(&ring->written, memory_order_acquire) == i) {
            sched_yield();
        }
        free(ring->blocks[i % RING_BLOCKS]);
        atomic_store_explicit(&ring->taken, i + 1, memory_order_release);
    }
}

static void run_one(void *arg, uint32_t index)
{
    struct plan *plan = arg;
    struct ring *ring = &plan->rings[index / 2];
    if (index % 2 == 0) {
        produce(ring, plan->pairs, index);
    } else {
        consume(ring, plan->pairs);
    }
}

int main(int argc, char **argv)
{
    struct plan plan = {.pairs = 5000000, .couples = 1};
    const struct workload_param params[] = {
        {"pairs", &plan.pairs, 1, UINT64_MAX / 2, "blocks that each producer hands over"},
        {"couples", &plan.couples, 1, 2048, "producers, and as many consumers"},
        {0},
    };
    workload_args(argc, argv, params);
    plan.rings = aligned_alloc(64, plan.couples * sizeof(struct ring));
    if (!plan.rings) {
        abort();
    }
    for (uint64_t i = 0; i < plan.couples; i++) {
        plan.rings[i] = (struct ring){0};
    }
    uint64_t loop_ns = workload_run_threads((uint32_t)plan.couples * 2, run_one, &plan);
    free(plan.rings);
    const struct workload_figure figures[] = {{"threads", plan.couples * 2}, {NULL, 0}};
    workload_report("handover", plan.pairs, loop_ns, figures);
    return 0;
}
