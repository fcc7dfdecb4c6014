// SPDX-License-Identifier: MIT
// young_blocks: most blocks die young and some old, in random order, below a plateau that rises now
// and then.
//
//   young_blocks EVENTS THREADS HOW    HOW: return, exit (_exit), kill (SIGKILL to itself)
//
// The program counts its operations and prints the sums over its threads just before its end:
// "allocations frees allocated_bytes temporary live_blocks live_bytes peak_bytes". The
// peak is of one thread. At the end the other threads still live, and wait. A killed program has
// not sent what it counted last.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SLOTS = 400,
    THREADS_MAX = 16
};

struct worker {
    uint64_t random;
    uint64_t events;
    void *blocks[SLOTS];
    size_t sizes[SLOTS];
    uint64_t allocations, frees, allocated, temporary, live, peak;
    int latest; // slot + 1 of the latest event's block
};

static struct worker g_workers[THREADS_MAX];
static pthread_barrier_t g_all_done;

static uint32_t below(struct worker *w, uint32_t bound)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((w->random >> 33) % bound);
}

static void count_free(struct worker *w, int slot)
{
    w->temporary += w->latest == slot + 1;
    w->latest = 0;
    w->frees++;
    w->live -= w->sizes[slot];
}

static void count_allocation(struct worker *w, int slot, size_t size)
{
    w->sizes[slot] = size;
    w->latest = slot + 1;
    w->allocations++;
    w->allocated += size;
    w->live += size;
    w->peak = w->live > w->peak ? w->live : w->peak;
}

static void from_here(struct worker *w, int slot, size_t size)
{
    w->blocks[slot] = malloc(size);
    count_allocation(w, slot, size);
}

static void from_there(struct worker *w, int slot, size_t size)
{
    w->blocks[slot] = calloc(1, size);
    count_allocation(w, slot, size);
}

static void event(struct worker *w)
{
    // The latest block is the most likely to be freed.
    const int is_latest = w->latest != 0 && below(w, 3) == 0;
    const int slot = is_latest ? w->latest - 1 : (int)below(w, SLOTS);
    const size_t size = 1 + below(w, below(w, 500) == 0 ? 40000 : 300);
    if (w->blocks[slot] == NULL) {
        (below(w, 2) ? from_here : from_there)(w, slot, size);
    } else if (below(w, 6) == 0) {
        count_free(w, slot);
        w->blocks[slot] = realloc(w->blocks[slot], size);
        count_allocation(w, slot, size);
    } else {
        count_free(w, slot);
        free(w->blocks[slot]);
        w->blocks[slot] = NULL;
    }
}

static void *work(void *argument)
{
    struct worker *w = argument;
    for (uint64_t i = 0; i < w->events; i++) {
        event(w);
    }
    pthread_barrier_wait(&g_all_done);
    while (pause() != 0) { // forever
    }
    return NULL;
}

static void say_counts(int threads)
{
    struct worker sum = {0};
    for (int i = 0; i < threads; i++) {
        const struct worker *w = &g_workers[i];
        sum.allocations += w->allocations;
        sum.frees += w->frees;
        sum.allocated += w->allocated;
        sum.temporary += w->temporary;
        sum.live += w->live;
        sum.peak += w->peak;
    }
    char text[200];
    const int length =
        snprintf(text, sizeof(text), "%llu %llu %llu %llu %llu %llu %llu\n",
                 (unsigned long long)sum.allocations, (unsigned long long)sum.frees,
                 (unsigned long long)sum.allocated, (unsigned long long)sum.temporary,
                 (unsigned long long)(sum.allocations - sum.frees), (unsigned long long)sum.live,
                 (unsigned long long)sum.peak);
    if (write(1, text, (size_t)length) != length) {
        _exit(3);
    }
}

int main(int argc, char **argv)
{
    const int threads = argc == 4 ? atoi(argv[2]) : 0;
    if (threads < 1 || threads > THREADS_MAX) {
        return 2;
    }
    for (int i = 0; i < threads; i++) {
        g_workers[i] = (struct worker){.random = 77 + i, .events = strtoull(argv[1], NULL, 10)};
    }
    pthread_barrier_init(&g_all_done, NULL, threads);
    for (int i = 1; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, &g_workers[i]) != 0) {
            return 2;
        }
    }
    for (uint64_t i = 0; i < g_workers[0].events; i++) {
        event(&g_workers[0]);
    }
    pthread_barrier_wait(&g_all_done);
    say_counts(threads);
    if (strcmp(argv[3], "kill") == 0) {
        kill(getpid(), SIGKILL);
    }
    if (strcmp(argv[3], "exit") == 0) {
        _exit(0);
    }
    return 0;
}
