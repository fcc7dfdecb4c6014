// SPDX-License-Identifier: MIT
// TRUTH: allocations=2000 frees=1000 allocated_bytes=64000 temporary=1000
// TRUTH: live_bytes=32000 live_blocks=1000
//
// A thread with a pending cancellation allocates until it reaches a cancellation point of its own.
// malloc and free are not cancellation points: a profiler's work inside them must not end the
// thread. The first cancellation makes libc load libgcc_s; the truth does not count those blocks.
#include <pthread.h>
#include <stdlib.h>

static void *work(void *argument)
{
    pthread_cancel(pthread_self());
    for (int i = 0; i < 1000; i++) {
        if (malloc(32) == NULL) {
            exit(1);
        }
        free(malloc(32));
    }
    pthread_testcancel();
    exit(2);
    return argument;
}

int main(void)
{
    pthread_t thread;
    void *result = NULL;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, &result);
    return result == PTHREAD_CANCELED ? 0 : 3;
}
