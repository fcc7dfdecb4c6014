// SPDX-License-Identifier: MIT
// heap: threads (argument, 8 if there is none) that allocate, resize and free without pause and
// verify every byte. At the end the program's own counts of malloc, free, calloc and realloc follow
// the verdict.
#include "until_eof.h"

enum {
    BLOCKS = 128
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

static void *run(void *argument)
{
    struct block blocks[BLOCKS] = {0};
    struct counts counts = {0};
    unsigned state = (unsigned)(uintptr_t)argument;
    while (!g_is_over) {
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
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[1000];
    unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 8;
    for (unsigned i = 0; i < count; i++) {
        threads[i] = start(run, (void *)(uintptr_t)(i + 1));
    }
    begin();
    for (unsigned i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    int status = verdict();
    printf("malloc %lu free %lu calloc %lu realloc %lu\n", g_totals.malloc, g_totals.free,
           g_totals.calloc, g_totals.realloc);
    return status;
}
