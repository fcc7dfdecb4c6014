// SPDX-License-Identifier: MIT
// fleet_node: a large process: many threads, whose blocks come from stacks that no other has.
//
//     fleet_node THREADS STACKS BLOCKS    of each thread; blocks are 64 bytes
//
// It prints "full" once all blocks live, and keeps them until its input ends.
// TRUTH: allocations=THREADS*BLOCKS+1 bytes=THREADS*(BLOCKS*64+8) and those of threads and stdio
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    DEPTH = 20, // two ways at each: a million stacks
    STACK_BYTES = 128 << 10,
};

static int stacks;
static int blocks;
static pthread_barrier_t barrier;

static void *left(int depth, unsigned path);

static void *right(int depth, unsigned path)
{
    void *block = depth == 0 ? malloc(64) : (path & 1 ? right : left)(depth - 1, path >> 1);
    return block;
}

static void *left(int depth, unsigned path)
{
    void *block = depth == 0 ? malloc(64) : (path & 1 ? right : left)(depth - 1, path >> 1);
    return block;
}

static void *work(void *number)
{
    const unsigned first = (unsigned)(size_t)number * (unsigned)stacks;
    for (int i = 0; i < blocks; i++) {
        if (left(DEPTH, first + (unsigned)(i % stacks)) == NULL) {
            abort();
        }
    }
    pthread_barrier_wait(&barrier); // full
    pthread_barrier_wait(&barrier); // the end
    return NULL;
}

int main(int argc, char **argv)
{
    const int threads = argc > 3 ? atoi(argv[1]) : 0;
    pthread_attr_t attributes;
    pthread_t *all = malloc((size_t)threads * sizeof(*all));
    char byte;
    if (threads == 0 || all == NULL) {
        return 2;
    }
    stacks = atoi(argv[2]);
    blocks = atoi(argv[3]);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (int i = 0; i < threads; i++) {
        if (pthread_create(&all[i], &attributes, work, (void *)(size_t)i) != 0) {
            return 3;
        }
    }
    pthread_barrier_wait(&barrier);
    puts("full");
    fflush(stdout);
    while (read(0, &byte, 1) > 0) {
    }
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < threads; i++) {
        pthread_join(all[i], NULL);
    }
    return 0;
}
