// SPDX-License-Identifier: MIT
// threads: many short threads that allocate a little.
//
// Measures the cost of the start and end of a thread in a profiler, and whether the profiler frees
// the memory. `threads` threads run in all, `at_once` at a time; each makes `pairs` pairs on eight
// slots. An operation is one thread's whole life.

#include "workload.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define SLOTS       8
#define AT_ONCE_MAX 512

struct life {
    uint64_t pairs;
    uint64_t seed;
};

static void *live(void *arg)
{
    const struct life *life = arg;
    struct workload_random random = workload_random_from(life->seed);
    void *slots[SLOTS] = {0};
    for (uint64_t i = 0; i < life->pairs; i++) {
        uint32_t slot = workload_random_below(&random, SLOTS);
        free(slots[slot]);
        slots[slot] = workload_alloc(16 + workload_random_below(&random, 255));
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        free(slots[i]);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    uint64_t threads = 1000;
    uint64_t at_once = 8;
    uint64_t pairs = 1000;
    const struct workload_param params[] = {
        {"threads", &threads, 1, 100000000, "threads in all"},
        {"at_once", &at_once, 1, AT_ONCE_MAX, "threads at a time"},
        {"pairs", &pairs, 0, UINT64_MAX / 2, "malloc and free pairs of each thread"},
        {0},
    };
    workload_args(argc, argv, params);
    pthread_t handles[AT_ONCE_MAX];
    struct life lives[AT_ONCE_MAX];
    uint64_t begin = workload_now_ns();
    for (uint64_t i = 0; i < threads + at_once; i++) {
        uint64_t place = i % at_once;
        if (i >= at_once && i - at_once < threads) {
            (void)pthread_join(handles[place], NULL);
        }
        if (i >= threads) {
            continue;
        }
        lives[place] = (struct life){pairs, i};
        if (pthread_create(&handles[place], NULL, live, &lives[place]) != 0) {
            (void)fprintf(stderr, "cannot create a thread\n");
            return 1;
        }
    }
    uint64_t loop_ns = workload_now_ns() - begin;
    const struct workload_figure figures[] = {{"at_once", at_once}, {"pairs", pairs}, {NULL, 0}};
    workload_report("threads", threads, loop_ns, figures);
    return 0;
}
