// SPDX-License-Identifier: MIT
#include "random_api.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "heap_tracer.h"

#define TEXT "between" // of marks and events outside of handlers

static struct api_sums {
    atomic_ulong marks;
    atomic_ulong weight;
} * g_sums; // of all processes

static void pause_shortly(uint64_t random)
{
    const struct timespec time = {.tv_nsec = 500000 + (long)(random % 1000000)};
    (void)nanosleep(&time, NULL);
}

static void handle(int number)
{
    static atomic_uint calls;
    struct cairn_stats stats;
    struct cairn_peak peak;
    uint64_t bytes;
    (void)number;
    switch (calls++ % 4) {
    case 0:
        cairn_mark("in a handler");
        break;
    case 1:
        cairn_event("in a handler", 1);
        break;
    case 2:
        (void)cairn_stats(CAIRN_THREAD, &stats);
        break;
    default:
        (void)cairn_peak_begin(&peak);
        (void)cairn_peak_end(&peak, &bytes);
    }
}

void api_begin(void)
{
    const struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    const struct itimerval often = {{.tv_usec = 20000}, {.tv_usec = 20000}};
    g_sums = mmap(NULL, sizeof(*g_sums), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (g_sums == MAP_FAILED || sigaction(SIGALRM, &action, NULL) != 0 ||
        setitimer(ITIMER_REAL, &often, NULL) != 0) {
        abort();
    }
}

// Return an address that no block of the program's own has, and no other thread.
static void *address_of(const struct api_thread *thread, uint64_t place)
{
    return (void *)(((uintptr_t)thread ^ (uintptr_t)1 << 46) + place % REPORTED_MAX * 16);
}

// The tracer has a block no later than cairn, and has it no shorter, as with those of malloc.
static void report(struct api_block *block, void *address, size_t size, int is_of_pool)
{
    if (block->address != NULL) {
        return;
    }
    *block = (struct api_block){address, size};
    if (tracer_add != NULL) {
        tracer_add(address, size);
    }
    if (is_of_pool) {
        cairn_pool_alloc("random", address, size);
    } else {
        cairn_report_alloc(address, size);
    }
}

static void trace_resize(const struct api_block *block, int is_now)
{
    if (is_now && tracer_resize != NULL) {
        tracer_resize(block->address, block->size);
    }
}

static void resize(struct api_block *block, size_t size, int is_of_pool)
{
    if (block->address == NULL) {
        return;
    }
    const int grows = size > block->size;
    block->size = size;
    trace_resize(block, grows);
    if (is_of_pool) {
        cairn_pool_realloc("random", block->address, block->address, size);
    } else {
        cairn_report_realloc(block->address, block->address, size);
    }
    trace_resize(block, !grows);
}

static void take_back(struct api_block *block)
{
    if (block->address == NULL) {
        return;
    }
    cairn_report_free(block->address);
    if (tracer_take != NULL) {
        tracer_take(block->address);
    }
    block->address = NULL;
}

static void ask(struct api_thread *thread, uint64_t random)
{
    struct cairn_stats stats;
    uint64_t bytes;
    switch (random % 6) {
    case 0:
        (void)cairn_stats(CAIRN_THREAD, &stats);
        break;
    case 1:
        (void)cairn_stats(CAIRN_PROCESS, &stats);
        break;
    case 2:
        (void)cairn_scope_begin(&thread->scope, CAIRN_THREAD);
        break;
    case 3:
        (void)cairn_scope_end(&thread->scope, &stats);
        break;
    case 4:
        (void)cairn_peak_end(&thread->peak, &bytes);
        (void)cairn_peak_begin(&thread->peak);
        break;
    default:
        (void)cairn_peak_end(&thread->peak, &bytes);
    }
}

void api_call(struct api_thread *thread, uint64_t random)
{
    const uint64_t place = random >> 16;
    const size_t size = 1 + (random >> 24) % 3000;
    struct api_block *block = &thread->reported[place % REPORTED_MAX];
    if (random >> 40 & 1) {
        pause_shortly(random >> 41);
    }
    switch (random % 16) {
    case 0:
    case 1:
    case 2:
        report(block, address_of(thread, place), size, (int)(random >> 8 & 1));
        break;
    case 3:
        resize(block, size, (int)(random >> 8 & 1));
        break;
    case 4:
    case 5:
        take_back(block);
        break;
    case 6:
    case 7:
        g_sums->weight += size;
        cairn_event(TEXT, size);
        break;
    case 8:
        ask(thread, random >> 8);
        break;
    case 9:
        g_sums->marks++;
        cairn_phase(TEXT);
        break;
    default:
        g_sums->marks++;
        cairn_mark(TEXT);
    }
}

void api_end_thread(struct api_thread *thread)
{
    uint64_t bytes;
    for (int i = 0; i < REPORTED_MAX; i++) {
        take_back(&thread->reported[i]);
    }
    (void)cairn_peak_end(&thread->peak, &bytes);
}

void api_write_sums(void)
{
    char text[64];
    const int bytes = snprintf(text, sizeof(text), "%lu %lu\n", g_sums->marks, g_sums->weight);
    (void)!write(STDOUT_FILENO, text, (size_t)bytes);
}
