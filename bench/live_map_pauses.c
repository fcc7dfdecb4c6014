// SPDX-License-Identifier: MIT
// live_map_pauses: measures how long the recorder pauses while its live map grows.
//
// Adds blocks and measures the processor time of every BATCH of them. The longest batch is an upper
// bound for the longest single insertion, whatever else the machine does. Wall-clock time of a
// batch also includes waiting, for the map's own thread or for a processor.
//
// On a virtual machine, processor time also includes work of the host: memory that the host moves
// costs the guest time without a page fault. So the map grows several times. Each growth does the
// same work around the same block, but the host does not. For each STRETCH of blocks, the shortest
// of the longest batches over all growths is therefore the map's own ("each time"). The work of the
// host is measured too: the same number of batches of random reads in the same amount of memory,
// all of it touched before.
//
//     live_map_pauses [MILLION_BLOCKS [GROWTHS]]
//
// Prints one line for each power of ten on the way up, for all growths; one for the way down after
// the last growth; and one for the reads.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "aggregate/live_blocks/live_map.h"
#include "aggregate/test_support/live_map_bytes.h"

enum {
    BATCH = 64,
    ADDRESS_STEP = 48,
    STRETCH = 1024 * BATCH, // the map's own thread does not end at the same block each time
    LINES = 4,              // approximate cache lines that the map touches for a block
    DECADES = 8,            // of blocks, from 100 000 on
    MAX_MILLIONS = 1000,
    MAX_GROWTHS = 100,
};

struct moment {
    uint64_t processor_ns;
    uint64_t clock_ns;
};

struct pauses {
    struct moment longest;
    uint64_t each_time_ns;
    uint64_t total_ns; // processor time
    uint64_t count;
};

struct growth {
    uint64_t blocks;
    uint64_t *stretches_ns; // longest batch of each stretch, the minimum of all growths
    struct pauses decades[DECADES];
    uint64_t live[DECADES]; // at the end of each decade
    uint64_t bytes[DECADES];
};

static uint64_t ns_of(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now); // cannot fail for these clocks
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct moment this_moment(void)
{
    return (struct moment){.processor_ns = ns_of(CLOCK_THREAD_CPUTIME_ID),
                           .clock_ns = ns_of(CLOCK_MONOTONIC)};
}

static uint64_t address_of(uint64_t number)
{
    return 0x555500000000 + number * ADDRESS_STEP;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static _Noreturn void fail(const char *why)
{
    (void)fprintf(stderr, "live_map_pauses: %s\n", why);
    exit(1);
}

// Record a batch that began at `before`. Return its processor time in ns.
static uint64_t note(struct pauses *pauses, const struct moment *before)
{
    const struct moment now = this_moment();
    const uint64_t took_ns = now.processor_ns - before->processor_ns;
    pauses->longest.processor_ns = most(pauses->longest.processor_ns, took_ns);
    pauses->longest.clock_ns = most(pauses->longest.clock_ns, now.clock_ns - before->clock_ns);
    pauses->total_ns += took_ns;
    pauses->count += BATCH;
    return took_ns;
}

static void add(struct live_map *map, uint64_t first)
{
    for (uint64_t i = first; i < first + BATCH; i++) {
        const struct live_block block = {
            .size_bytes = i % 4000, .born_ms = i / 1000, .row = (uint32_t)(i % 1000)};
        if (live_map_add(map, address_of(i), &block) != ERR_OK)
            fail("no memory");
    }
}

static void take(struct live_map *map, uint64_t first)
{
    struct live_block block;
    for (uint64_t i = first; i < first + BATCH; i++) {
        if (!live_map_take(map, address_of(i), &block))
            fail("a block is missing");
    }
}

// Grow the empty map once.
static void grow(struct live_map *map, struct growth *growth)
{
    uint64_t decade = 0;
    uint64_t longest_ns = 0;
    for (uint64_t done = 0, last = 100000; done < growth->blocks;) {
        const struct moment before = this_moment();
        add(map, done);
        longest_ns = most(longest_ns, note(&growth->decades[decade], &before));
        done += BATCH;
        if (done % STRETCH == 0 || done == growth->blocks) {
            uint64_t *least_ns = &growth->stretches_ns[(done - 1) / STRETCH];
            *least_ns = longest_ns < *least_ns ? longest_ns : *least_ns;
            longest_ns = 0;
        }
        growth->live[decade] = map->live_count;
        if (done >= last || done == growth->blocks) {
            growth->bytes[decade++] = live_map_bytes(map);
            last *= 10;
        }
    }
}

// Find the maximum of each decade that occurred in every growth, from its stretches.
static void find_each_time(struct growth *growth)
{
    uint64_t first = 0;
    for (int i = 0; i < DECADES && growth->live[i] > 0; i++) {
        struct pauses *decade = &growth->decades[i];
        for (uint64_t s = first / STRETCH; s * STRETCH < growth->live[i]; s++)
            decade->each_time_ns = most(decade->each_time_ns, growth->stretches_ns[s]);
        first = growth->live[i];
    }
}

static void print_pauses(const char *way, uint64_t live, const struct pauses *pauses)
{
    (void)printf("%11" PRIu64 "  %-5s  %8.1f  %11.3f  %12.3f", live, way,
                 (double)pauses->total_ns / (double)pauses->count,
                 (double)pauses->longest.processor_ns / 1e6,
                 (double)pauses->longest.clock_ns / 1e6);
}

static void print_growth(const struct growth *growth)
{
    (void)printf("live blocks  way    ns/block  longest, ms  by the clock  each time, ms  bytes\n");
    for (int i = 0; i < DECADES && growth->live[i] > 0; i++) {
        print_pauses("up", growth->live[i], &growth->decades[i]);
        (void)printf("  %13.3f  %5.1f\n", (double)growth->decades[i].each_time_ns / 1e6,
                     (double)growth->bytes[i] / (double)growth->live[i]);
    }
}

static void shrink(struct live_map *map, uint64_t blocks)
{
    struct pauses pauses = {0};
    for (uint64_t done = 0; done < blocks; done += BATCH) {
        const struct moment before = this_moment();
        take(map, done);
        (void)note(&pauses, &before);
    }
    print_pauses("down", map->live_count, &pauses);
    (void)putchar('\n');
}

// Run as many batches as the map had, which only read memory that was touched before.
static void read_memory(uint64_t bytes, uint64_t blocks)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        fail("no memory");
    struct pauses pauses = {0};
    uint64_t random = 88172645463325252u;
    for (uint64_t done = 0; done < blocks; done += BATCH) {
        const struct moment before = this_moment();
        for (int i = 0; i < BATCH * LINES; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            *(volatile char *)&memory[(random >> 20) % bytes];
        }
        (void)note(&pauses, &before);
    }
    print_pauses("reads", blocks, &pauses);
    (void)putchar('\n');
    (void)munmap(memory, bytes);
}

// Return the number in an argument, or `otherwise` without one. Return 0 if it is not from 1 to
// max.
static uint64_t number_of(const char *argument, uint64_t otherwise, uint64_t max)
{
    if (argument == NULL)
        return otherwise;
    char *end;
    const uint64_t number = strtoull(argument, &end, 10);
    return *end == '\0' && number <= max ? number : 0;
}

int main(int argc, char **argv)
{
    const uint64_t millions = number_of(argc > 1 ? argv[1] : NULL, 100, MAX_MILLIONS);
    const uint64_t growths = number_of(argc > 2 ? argv[2] : NULL, 3, MAX_GROWTHS);
    if (millions == 0 || growths == 0)
        fail("usage: live_map_pauses [MILLION_BLOCKS [GROWTHS]]");
    struct growth growth = {.blocks = millions * 1000000 / BATCH * BATCH};
    const size_t stretches_bytes = (growth.blocks / STRETCH + 1) * sizeof *growth.stretches_ns;
    growth.stretches_ns = malloc(stretches_bytes);
    if (growth.stretches_ns == NULL)
        fail("no memory");
    memset(growth.stretches_ns, 0xff, stretches_bytes);
    struct live_map map;
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < growths; i++) {
        live_map_init(&map, 42);
        grow(&map, &growth);
        bytes = live_map_bytes(&map);
        if (i + 1 < growths)
            live_map_release(&map);
    }
    find_each_time(&growth);
    print_growth(&growth);
    shrink(&map, growth.blocks);
    live_map_release(&map);
    read_memory(bytes, growth.blocks);
    free(growth.stretches_ns);
    return 0;
}
