// SPDX-License-Identifier: MIT
// waiting_plugin: when it is opened and when it is closed, it waits for a thread that allocates,
// maps memory, and ends. The loader's lock is held meanwhile, so a hook that took it would
// deadlock.
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

static void *work(void *context)
{
    for (size_t size = 1; size < 100; size++) {
        free(realloc(malloc(size), size * 2));
    }
    munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
    return context;
}

static void wait_for_work(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) != 0 || pthread_join(thread, NULL) != 0) {
        abort();
    }
}

__attribute__((constructor)) static void begin(void)
{
    wait_for_work();
}

__attribute__((destructor)) static void end(void)
{
    wait_for_work();
}
