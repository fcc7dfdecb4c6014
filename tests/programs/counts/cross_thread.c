// SPDX-License-Identifier: MIT
// TRUTH: allocations=20000 frees=20000 allocated_bytes=640000 temporary=0 peak_bytes=64
// TRUTH: live_bytes=0 live_blocks=0 thread_blocks=1
//
// Every block is freed by another thread than its allocator, and its address is reused at once. Two
// blocks pass back and forth: each thread allocates one while it holds the other's.
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

enum {
    ROUNDS = 10000
};

static sem_t g_there;
static sem_t g_back;
static void *g_box;

static void *other_side(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        sem_wait(&g_there);
        void *theirs = g_box;
        g_box = malloc(32);
        free(theirs);
        sem_post(&g_back);
    }
    return argument;
}

int main(void)
{
    pthread_t thread;
    sem_init(&g_there, 0, 0);
    sem_init(&g_back, 0, 0);
    pthread_create(&thread, NULL, other_side, NULL);
    void *theirs = NULL;
    for (int i = 0; i < ROUNDS; i++) {
        g_box = malloc(32);
        free(theirs);
        sem_post(&g_there);
        sem_wait(&g_back);
        theirs = g_box;
    }
    free(theirs);
    pthread_join(thread, NULL);
    return 0;
}
