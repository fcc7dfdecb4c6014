// SPDX-License-Identifier: MIT
// TRUTH(step): reallocs=400 moved_bytes=83353600 grown_bytes=409600 largest_bytes=413696
// TRUTH(double): reallocs=7 moved_bytes=520192 grown_bytes=520192 largest_bytes=524288
//
// growing_blocks step|double [threads]: grows one block from 4096 bytes: 400 times by 1024, or
// doubled 7 times. Reallocs that shrink it, or grow a block below 4096 bytes, follow and do not
// count. With "threads" another thread has allocated before, and waits meanwhile.
//   step:    moved 400 * 4096 + 1024 * (0 + 1 + ... + 399), grown 400 * 1024
//   double:  moved 4096 * (1 + 2 + ... + 64), grown the same
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_barrier_t begun;
static pthread_barrier_t done;

static void *wait_with_a_block(void *unused)
{
    void *block = malloc(100);
    pthread_barrier_wait(&begun);
    pthread_barrier_wait(&done);
    free(block);
    return unused;
}

static char *append_by_step(char *block)
{
    for (size_t i = 1; i <= 400; i++) {
        block = realloc(block, 4096 + i * 1024);
        block[0] = 1;
    }
    return block;
}

static char *append_doubled(char *block)
{
    for (size_t bytes = 8192; bytes <= 524288; bytes *= 2) {
        block = realloc(block, bytes);
        block[0] = 1;
    }
    return block;
}

static void grow(int by_step)
{
    char *block = malloc(4096);
    block = by_step ? append_by_step(block) : append_doubled(block);
    block = realloc(block, 5000);
    free(block);
    block = malloc(10);
    block = realloc(block, 4000);
    free(block);
}

int main(int argc, char **argv)
{
    const int has_threads = argc > 2;
    pthread_t other;
    if (has_threads) {
        pthread_barrier_init(&begun, NULL, 2);
        pthread_barrier_init(&done, NULL, 2);
        if (pthread_create(&other, NULL, wait_with_a_block, NULL) != 0) {
            return 1;
        }
        pthread_barrier_wait(&begun);
    }
    grow(strcmp(argv[1], "step") == 0);
    if (has_threads) {
        pthread_barrier_wait(&done);
        pthread_join(other, NULL);
    }
    return 0;
}
