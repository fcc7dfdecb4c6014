// SPDX-License-Identifier: MIT
// endure: threads that allocate, wait in epoll_wait, sleep and compute, until the end of the input,
// but for LEAST allocations at least.
// Each checks what it does; the last line says what was wrong:
//   "ready\n" ... "done, N allocations, N interrupted, WRONG wrong\n"
// A wait that ends with another error than EINTR, a block with other bytes than were written, and
// a sum that comes out differently are wrong.
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    KEPT = 64,
    LEAST = 1000,
};

#ifdef PADDING_BYTES
// Constants are in the pages of the code.
__attribute__((used)) static const char padding[PADDING_BYTES] = {1};
#endif

static atomic_bool is_over;
static atomic_long allocations;
static atomic_long interrupted;
static atomic_long wrong;

static void *allocate(void *argument)
{
    unsigned char *kept[KEPT] = {0};
    size_t sizes[KEPT] = {0};
    unsigned turn = 0;
    while (!is_over) {
        const unsigned at = turn++ % KEPT;
        for (size_t i = 0; i < sizes[at]; i++) {
            wrong += kept[at][i] != (unsigned char)at;
        }
        free(kept[at]);
        sizes[at] = 16 + turn % 200;
        kept[at] = malloc(sizes[at]);
        memset(kept[at], (int)at, sizes[at]);
        allocations++;
        if (turn % 128 == 0) {
            usleep(500);
        }
    }
    for (unsigned at = 0; at < KEPT; at++) {
        free(kept[at]);
    }
    return argument;
}

static void *wait_for_nothing(void *argument)
{
    const int poll = epoll_create1(0);
    struct epoll_event event;
    while (!is_over) {
        const int result = epoll_wait(poll, &event, 1, 50);
        interrupted += result < 0 && errno == EINTR;
        wrong += result != 0 && errno != EINTR;
    }
    close(poll);
    return argument;
}

static void *compute(void *argument)
{
    while (!is_over) {
        double sum = 0;
        for (int i = 1; i <= 2000; i++) {
            sum += (double)i / 8;
        }
        wrong += sum != 2000.0 * 2001 / 16;
    }
    return argument;
}

int main(void)
{
    void *(*const works[])(void *) = {allocate, allocate, wait_for_nothing, compute};
    pthread_t threads[sizeof(works) / sizeof(*works)];
    for (size_t i = 0; i < sizeof(works) / sizeof(*works); i++) {
        pthread_create(threads + i, NULL, works[i], NULL);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("ready\n");
    while (getchar() != EOF || allocations < LEAST) {
        usleep(1000);
    }
    is_over = true;
    for (size_t i = 0; i < sizeof(works) / sizeof(*works); i++) {
        pthread_join(threads[i], NULL);
    }
    printf("done, %ld allocations, %ld interrupted, %ld wrong\n", allocations, interrupted, wrong);
    return 0;
}
