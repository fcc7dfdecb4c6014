// SPDX-License-Identifier: MIT
// A program for `cairn record --sample`: call sites whose sizes are known. Each round:
//
//   churn      300,000 blocks of 16 to 511 bytes; at most 1,000 live at once, freed at the end
//   leak         3,000 blocks of 264 bytes, never freed: 1 % of the traffic of churn
//   brief       20,000 blocks of 1,000 bytes, freed at once: all are temporary
//   grow           100 blocks, reallocated from 64 to 131,072 bytes by doubling, then freed
//   large           40 blocks of 1,000,000 bytes, live together, then freed
//
// The argument: none is one round; "threads" are four threads with a round each; "fork" is a round
// in a child process, after one in its parent, and the child frees a block of its parent.
//
// TRUTH: allocations=324240 frees=321240 live_blocks=3000 live_bytes=792000
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CHURN_BLOCKS = 300000,
    CHURN_LIVE = 1000,
    LEAKED_EACH = 100,
    LEAKED_BYTES = 264,
    BRIEF_BLOCKS = 20000,
    BRIEF_BYTES = 1000,
    GROWN_BLOCKS = 100,
    GROWN_FROM = 64,
    GROWN_TO = 131072,
    LARGE_BLOCKS = 40,
    LARGE_BYTES = 1000000,
    THREADS = 4,
};

static void *leak(void)
{
    return malloc(LEAKED_BYTES);
}

static void churn(uint64_t random)
{
    void *live[CHURN_LIVE] = {NULL};
    for (int i = 0; i < CHURN_BLOCKS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        void **place = live + (random >> 33) % CHURN_LIVE;
        free(*place);
        *place = malloc(16 + (random >> 50) % 496);
        if (i % LEAKED_EACH == 0) {
            (void)leak();
        }
    }
    for (int i = 0; i < CHURN_LIVE; i++) {
        free(live[i]);
    }
}

static void brief(void)
{
    for (int i = 0; i < BRIEF_BLOCKS; i++) {
        free(malloc(BRIEF_BYTES));
    }
}

static void grow(void)
{
    for (int i = 0; i < GROWN_BLOCKS; i++) {
        void *block = NULL;
        for (size_t bytes = GROWN_FROM; bytes <= GROWN_TO; bytes *= 2) {
            block = realloc(block, bytes);
        }
        free(block);
    }
}

static void large(void)
{
    void *blocks[LARGE_BLOCKS];
    for (int i = 0; i < LARGE_BLOCKS; i++) {
        blocks[i] = malloc(LARGE_BYTES);
    }
    for (int i = 0; i < LARGE_BLOCKS; i++) {
        free(blocks[i]);
    }
}

static void *run_round(void *seed)
{
    churn((uint64_t)(uintptr_t)seed);
    brief();
    grow();
    large();
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        (void)pthread_create(threads + i, NULL, run_round, (void *)(i + 1));
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "threads") == 0) {
        run_threads();
        return 0;
    }
    (void)run_round((void *)1);
    if (argc > 1 && strcmp(argv[1], "fork") == 0) {
        void *inherited = leak();
        const pid_t child = fork();
        if (child == 0) {
            free(inherited);
            (void)run_round((void *)2);
            exit(0);
        }
        (void)waitpid(child, NULL, 0);
    }
    return 0;
}
