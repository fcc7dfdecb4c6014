// SPDX-License-Identifier: MIT
// TRUTH: allocations=6000 frees=4000 allocated_bytes=192000 temporary=2000 peak_bytes=64032
// TRUTH: live_bytes=64000 live_blocks=2000 thread_blocks=1 threads=2001
//
// Two thousand threads, one after the other; each allocates three blocks and leaks one.
#include <pthread.h>
#include <stdlib.h>

static char g_failed;

static void *work(void *argument)
{
    void *held = malloc(32);
    void *temporary = malloc(32);
    free(temporary);
    free(held);
    void *leaked = malloc(32);
    return leaked == NULL ? argument : NULL;
}

int main(void)
{
    for (int i = 0; i < 2000; i++) {
        pthread_t thread;
        void *result = NULL;
        if (pthread_create(&thread, NULL, work, &g_failed) != 0) {
            return 1;
        }
        pthread_join(thread, &result);
        if (result != NULL) {
            return 2;
        }
    }
    return 0;
}
