// SPDX-License-Identifier: MIT
// heap: threads (argument, 8 if there is none) that allocate, resize and free without pause and
// verify every byte. With the second argument "counted" they wait for a line of input, work for a
// while, and print how often they called malloc, free, calloc and realloc; nothing else of the
// process calls these meanwhile. With "headless" the first thread ends early.
#include "until_eof.h"

#include <semaphore.h>
#include <time.h>

enum {
    BLOCKS = 128,
    COUNTED_ROUNDS = 10
};

struct counts {
    unsigned long malloc, free, calloc, realloc;
};

static struct counts g_totals;
static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;

struct block {
    unsigned char *bytes;
    size_t size;
    unsigned char fill;
};

static bool is_intact(const struct block *block)
{
    for (size_t i = 0; i < block->size; i++) {
        if (block->bytes[i] != block->fill) {
            return false;
        }
    }
    return true;
}

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void renew(struct block *block, unsigned *state, struct counts *counts)
{
    const size_t size = 1 + next_random(state) % 2000;
    const unsigned choice = next_random(state) % 4;
    if (block->bytes != NULL && !is_intact(block)) {
        fail("a block has changed");
    }
    if (block->bytes != NULL && choice == 0) {
        size_t kept = size < block->size ? size : block->size;
        block->bytes = realloc(block->bytes, size);
        counts->realloc++;
        block->size = kept;
        if (!is_intact(block)) {
            fail("realloc has lost bytes");
        }
    } else {
        if (block->bytes != NULL) {
            free(block->bytes);
            counts->free++;
        }
        if (choice == 1) {
            block->bytes = calloc(1, size);
            counts->calloc++;
        } else {
            block->bytes = malloc(size);
            counts->malloc++;
        }
    }
    block->size = size;
    block->fill = (unsigned char)next_random(state);
    memset(block->bytes, block->fill, size);
}

static bool g_is_counted;
static sem_t g_go;
static sem_t g_end;

static void work(unsigned seed)
{
    struct block blocks[BLOCKS] = {0};
    struct counts counts = {0};
    unsigned state = seed;
    for (unsigned round = 0; g_is_counted ? round < COUNTED_ROUNDS : !g_is_over; round++) {
        for (unsigned i = 0; i < 1000; i++) {
            renew(&blocks[next_random(&state) % BLOCKS], &state, &counts);
        }
        g_checks += 1000;
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (blocks[i].bytes != NULL) {
            free(blocks[i].bytes);
            counts.free++;
        }
    }
    pthread_mutex_lock(&g_mutex);
    g_totals.malloc += counts.malloc;
    g_totals.free += counts.free;
    g_totals.calloc += counts.calloc;
    g_totals.realloc += counts.realloc;
    pthread_mutex_unlock(&g_mutex);
}

static void *run(void *argument)
{
    if (g_is_counted) {
        sem_wait(&g_go);
    }
    work((unsigned)(uintptr_t)argument);
    sem_post(&g_end);
    while (g_is_counted && !g_is_over) {
        struct timespec pause = {.tv_nsec = 1000000};
        nanosleep(&pause, NULL); // a thread that ends frees its cache
    }
    return NULL;
}

static void run_counted(unsigned count)
{
    char text[128];
    char byte;
    (void)!write(1, "ready\n", 6);
    (void)!read(0, &byte, 1);
    for (unsigned i = 0; i < count; i++) {
        sem_post(&g_go);
    }
    for (unsigned i = 0; i < count; i++) {
        sem_wait(&g_end);
    }
    int len = snprintf(text, sizeof(text), "malloc %lu free %lu calloc %lu realloc %lu\ndone\n",
                       g_totals.malloc, g_totals.free, g_totals.calloc, g_totals.realloc);
    (void)!write(1, text, (size_t)len);
    (void)!read(0, &byte, 1);
    g_is_over = true;
}

static void *wait_and_exit(void *argument)
{
    pthread_join(*(pthread_t *)argument, NULL);
    exit(verdict());
}

int main(int argc, char **argv)
{
    static pthread_t threads[1000];
    unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 8;
    g_is_counted = argc > 2 && strcmp(argv[2], "counted") == 0;
    sem_init(&g_go, 0, 0);
    sem_init(&g_end, 0, 0);
    for (unsigned i = 0; i < count; i++) {
        threads[i] = start(run, (void *)(uintptr_t)(i + 1));
    }
    if (g_is_counted) {
        run_counted(count);
    } else {
        begin();
    }
    if (argc > 2 && strcmp(argv[2], "headless") == 0) {
        (void)start(wait_and_exit, &threads[0]);
        pthread_exit(NULL);
    }
    for (unsigned i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    return verdict();
}
