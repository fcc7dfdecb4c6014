// SPDX-License-Identifier: MIT
// TRUTH: allocations=4000 frees=2000 allocated_bytes=64000 temporary=2000
// TRUTH: live_bytes=32000 live_blocks=2000
//
// A thread is cancelled asynchronously while it only calls malloc and free, so the cancellation
// nearly always hits inside one of them. main continues and counts. POSIX guarantees nothing here.
// But blocks in glibc's cache of the thread need no lock, and programs do this. The truth does not
// count the cancelled thread (blocks of 24 bytes) and libc's load of libgcc_s.
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

static sem_t g_runs;

static void *work(void *argument)
{
    free(malloc(24));
    int before = 0;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
    sem_post(&g_runs);
    for (;;) {
        free(malloc(24));
    }
    return argument;
}

int main(void)
{
    pthread_t thread;
    void *result = NULL;
    sem_init(&g_runs, 0, 0);
    pthread_create(&thread, NULL, work, NULL);
    sem_wait(&g_runs);
    for (int i = 0; i < 1000; i++) {
        if (malloc(16) == NULL) {
            return 1;
        }
        free(malloc(16));
    }
    pthread_cancel(thread);
    pthread_join(thread, &result);
    for (int i = 0; i < 1000; i++) {
        if (malloc(16) == NULL) {
            return 2;
        }
        free(malloc(16));
    }
    return result == PTHREAD_CANCELED ? 0 : 3;
}
