// SPDX-License-Identifier: MIT
// TRUTH: allocations=12000000 frees=12000000 allocated_bytes=1200000000 live_bytes=0
// TRUTH: live_blocks=0 threads=1201
//
// 1200 threads, eight at a time: each allocates and frees 10,000 blocks as fast as it can, which is
// faster than a recorder reads. With an argument it says so and waits for a byte before they begin,
// and for another one before it ends.
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    THREADS = 1200,
    AT_ONCE = 8,
    BLOCKS = 10000,
    BYTES = 100,
    HELD = 8
};

static void *work(void *argument)
{
    void *held[HELD] = {0};
    unsigned random = 1;
    for (int i = 0; i < BLOCKS; i++) {
        random = random * 1103515245u + 12345u;
        void **place = &held[random >> 16 & (HELD - 1)];
        free(*place);
        *place = malloc(BYTES);
    }
    for (int i = 0; i < HELD; i++) {
        free(held[i]);
    }
    return argument;
}

static void await_byte(void)
{
    char byte = '\n';
    if (write(STDOUT_FILENO, &byte, 1) != 1 || read(STDIN_FILENO, &byte, 1) != 1) {
        _exit(2);
    }
}

int main(int argc, char **argv)
{
    (void)argv;
    pthread_t threads[AT_ONCE];
    if (argc > 1) {
        await_byte();
    }
    for (int i = 0; i < THREADS + AT_ONCE; i++) {
        pthread_t *thread = &threads[i % AT_ONCE];
        if (i >= AT_ONCE) {
            pthread_join(*thread, NULL);
        }
        if (i < THREADS && pthread_create(thread, NULL, work, NULL) != 0) {
            return 1;
        }
    }
    if (argc > 1) {
        await_byte();
    }
    return 0;
}
