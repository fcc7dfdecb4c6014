// SPDX-License-Identifier: MIT
//
// handover WAY: a realloc gives an address away, and another thread allocates and frees a block at
// it before the realloc returns. It needs libhandover_allocator.so. WAY: "first" if the realloc is
// the first event of its thread, while only one other has had any; "third" if two others have;
// "alone" if no other thread has had any when the realloc begins.
// TRUTH: make_old one allocation that is freed; make_new one that is temporary.
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "handover.h"

enum {
    MOVED_BYTES = 6000,
};

static sem_t g_is_moved;
static sem_t g_is_used;

void handover_moved(void)
{
    (void)sem_post(&g_is_moved);
    while (sem_wait(&g_is_used) != 0) {
    }
}

__attribute__((noinline)) static void *make_old(void)
{
    return malloc(HANDOVER_BYTES);
}

__attribute__((noinline)) static void *make_new(void)
{
    return malloc(HANDOVER_BYTES);
}

static void *move(void *block)
{
    free(realloc(block, MOVED_BYTES));
    return NULL;
}

static void *use(void *unused)
{
    while (sem_wait(&g_is_moved) != 0) {
    }
    free(make_new());
    (void)sem_post(&g_is_used);
    return unused;
}

static void *allocate(void *unused)
{
    free(malloc(100));
    return unused;
}

static int start(pthread_t *thread, void *(*function)(void *), void *argument)
{
    return pthread_create(thread, NULL, function, argument) == 0;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc != 2 || sem_init(&g_is_moved, 0, 0) != 0 || sem_init(&g_is_used, 0, 0) != 0) {
        return 2;
    }
    if (strcmp(argv[1], "third") == 0) {
        if (!start(&thread, allocate, NULL)) {
            return 1;
        }
        (void)pthread_join(thread, NULL);
    }
    void *old = make_old();
    const int is_alone = strcmp(argv[1], "alone") == 0;
    if (!start(&thread, is_alone ? use : move, is_alone ? NULL : old)) {
        return 1;
    }
    if (is_alone) {
        (void)move(old);
    } else {
        (void)use(NULL);
    }
    (void)pthread_join(thread, NULL);
    return 0;
}
