// SPDX-License-Identifier: MIT
// tides: threads allocate in some rounds, and then free each other's blocks in as many. Arguments:
// threads, rounds, blocks of a thread and round. After each round, one thread waits until cairn has
// counted it, sets a mark, and rests, so that a round and the next one are in different time
// slices. Since nothing is freed before all has been allocated, each block is live at the peak. It
// states no truth itself.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "cairn.h"

enum {
    THREADS_MAX = 16,
    BLOCKS_MAX = 1 << 20,
};

static void *g_blocks[BLOCKS_MAX];
static pthread_barrier_t g_barrier;
static long g_threads;
static long g_rounds;
static long g_count;

__attribute__((noinline)) static void *flow(uint64_t random)
{
    return malloc(1 + random % (random % 50 == 0 ? 20000 : 400));
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void rest(void)
{
    static const struct timespec pause = {.tv_nsec = 40000000};
    struct cairn_stats stats;
    if (pthread_barrier_wait(&g_barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
        (void)cairn_stats(CAIRN_PROCESS, &stats); // it may run alone
        cairn_mark("tide");
        (void)nanosleep(&pause, NULL);
    }
    (void)pthread_barrier_wait(&g_barrier);
}

static void *work(void *argument)
{
    const long number = (long)(intptr_t)argument;
    uint64_t random = ((uint64_t)number + 1) * 0x9e3779b97f4a7c15u;
    for (long round = 0; round < g_rounds; round++) {
        void **blocks = g_blocks + (round * g_threads + number) * g_count;
        for (long i = 0; i < g_count; i++) {
            blocks[i] = flow(next_random(&random));
        }
        rest();
    }
    for (long round = 0; round < g_rounds; round++) {
        void **blocks = g_blocks + (round * g_threads + (number + 1) % g_threads) * g_count;
        for (long i = 0; i < g_count; i++) {
            if (next_random(&random) % 8 != 0) { // the others stay
                free(blocks[i]);
            }
        }
        rest();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS_MAX];
    if (argc != 4) {
        return 2;
    }
    g_threads = strtol(argv[1], NULL, 10);
    g_rounds = strtol(argv[2], NULL, 10);
    g_count = strtol(argv[3], NULL, 10);
    if (g_threads > THREADS_MAX || g_threads * g_rounds * g_count > BLOCKS_MAX ||
        pthread_barrier_init(&g_barrier, NULL, (unsigned)g_threads) != 0) {
        return 2;
    }
    for (long i = 0; i < g_threads; i++) {
        if (pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i) != 0) {
            return 1;
        }
    }
    for (long i = 0; i < g_threads; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return 0;
}
