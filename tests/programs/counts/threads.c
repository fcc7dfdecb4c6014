// SPDX-License-Identifier: MIT
// TRUTH: allocations=8008 frees=8004 allocated_bytes=4962304 temporary=4000 peak_bytes=4194304
// TRUTH: live_bytes=0 live_blocks=4 thread_blocks=4
//
// Each of four threads holds 1 MiB at the same moment, then allocates blocks in nested pairs. The
// inner block of a pair is temporary. Each thread leaks a zero-byte block, so that a lost thread
// shows. The test adds the blocks that pthread_create allocates for a thread (thread_blocks).
#include <pthread.h>
#include <stdlib.h>

enum {
    THREADS = 4,
    ROUNDS = 1000
};

static pthread_barrier_t g_all_hold;

static void *work(void *argument)
{
    (void)argument;
    void *big = malloc(1 << 20);
    void *leaked = malloc(0);
    pthread_barrier_wait(&g_all_hold);
    free(big);
    pthread_barrier_wait(&g_all_hold);
    for (int i = 0; i < ROUNDS; i++) {
        void *outer = malloc(64);
        void *inner = malloc(128);
        free(inner);
        free(outer);
    }
    return leaked;
}

int main(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&g_all_hold, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, work, NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        void *leaked = NULL;
        pthread_join(threads[i], &leaked);
        if (leaked == NULL) {
            return 1;
        }
    }
    return 0;
}
