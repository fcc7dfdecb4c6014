// SPDX-License-Identifier: MIT
// siblings threads|processes FACTOR: four of a kind that hold blocks at one time, the third FACTOR
// times as much as each of the others.
//
//   threads     worker-1 to worker-4. The first thread holds 1 MiB.
//   processes   four children of this program, which holds 1 MiB and has no part in the work
//
// Each holds 64 blocks of 64 KiB, the third FACTOR (at most 100) times as many. Threads hold
// theirs until all do; processes run one after the other.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SIBLINGS = 4,
    UNEVEN = 2, // counted from 0
    BLOCKS = 64,
    BLOCK_BYTES = 65536,
};

static pthread_barrier_t g_all_hold;
static size_t g_factor;

// The test searches its name.
static void *keep(void)
{
    return malloc(BLOCK_BYTES);
}

static void **hold(size_t sibling, size_t *count)
{
    static void *blocks[SIBLINGS][BLOCKS * 100];
    *count = sibling == UNEVEN ? BLOCKS * g_factor : BLOCKS;
    for (size_t i = 0; i < *count; i++) {
        blocks[sibling][i] = keep();
    }
    return blocks[sibling];
}

static void let_go(void **blocks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
    }
}

static void *work(void *argument)
{
    const size_t sibling = *(const size_t *)argument;
    char name[16];
    size_t count;
    (void)snprintf(name, sizeof(name), "worker-%zu", sibling + 1);
    (void)pthread_setname_np(pthread_self(), name);
    void **blocks = hold(sibling, &count);
    (void)pthread_barrier_wait(&g_all_hold);
    let_go(blocks, count);
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[SIBLINGS];
    size_t numbers[SIBLINGS];
    (void)pthread_barrier_init(&g_all_hold, NULL, SIBLINGS);
    for (size_t i = 0; i < SIBLINGS; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, work, &numbers[i]) != 0) {
            abort();
        }
    }
    for (size_t i = 0; i < SIBLINGS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
}

static void run_processes(void)
{
    for (size_t i = 0; i < SIBLINGS; i++) {
        const pid_t child = fork();
        if (child == 0) {
            size_t count;
            void **blocks = hold(i, &count);
            let_go(blocks, count);
            exit(0);
        }
        (void)waitpid(child, NULL, 0);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        return 2;
    }
    g_factor = strtoul(argv[2], NULL, 10);
    void *own = malloc(1 << 20);
    if (strcmp(argv[1], "threads") == 0) {
        run_threads();
    } else {
        run_processes();
    }
    free(own);
    return 0;
}
