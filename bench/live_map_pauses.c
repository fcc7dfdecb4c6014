// SPDX-License-Identifier: MIT
// live_map_pauses: how long the recorder stands still while its live map grows.
//
// Adds blocks and measures the processor time of every BATCH of them: the longest batch is an upper
// bound for the longest single one, whatever else the machine does meanwhile. Then takes all blocks
// out again, which shrinks the map. By the clock, a batch takes longer where it waits, be it for
// the map's own thread or because the machine has other things to do.
//
//     live_map_pauses [MILLION_BLOCKS]
//
// Prints one line for each power of ten on the way up, and one for the way down.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "recorder/live_map.h"

enum {
    BATCH = 64,
    ADDRESS_STEP = 48,
};

struct moment {
    uint64_t processor_ns;
    uint64_t clock_ns;
};

struct pauses {
    struct moment longest;
    uint64_t total_ns; // of processor time
    uint64_t count;
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

// A batch is over that began at `before`.
static void note(struct pauses *pauses, const struct moment *before)
{
    const struct moment now = this_moment();
    const uint64_t took_ns = now.processor_ns - before->processor_ns;
    pauses->longest.processor_ns = most(pauses->longest.processor_ns, took_ns);
    pauses->longest.clock_ns = most(pauses->longest.clock_ns, now.clock_ns - before->clock_ns);
    pauses->total_ns += took_ns;
    pauses->count += BATCH;
}

static void add(struct live_map *map, uint64_t first)
{
    for (uint64_t i = first; i < first + BATCH; i++) {
        const struct live_block block = {
            .size_bytes = i % 4000, .born_ms = i / 1000, .row = (uint32_t)(i % 1000)};
        if (live_map_add(map, address_of(i), &block) != ERR_OK) {
            (void)fprintf(stderr, "live_map_pauses: no memory\n");
            exit(1);
        }
    }
}

static void take(struct live_map *map, uint64_t first)
{
    struct live_block block;
    for (uint64_t i = first; i < first + BATCH; i++) {
        if (!live_map_take(map, address_of(i), &block)) {
            (void)fprintf(stderr, "live_map_pauses: a block is missing\n");
            exit(1);
        }
    }
}

static void print(const struct live_map *map, const char *way, const struct pauses *pauses)
{
    (void)printf("%11" PRIu64 "  %-4s  %8.1f  %11.3f  %12.3f  %11.1f\n", map->live_count, way,
                 (double)pauses->total_ns / (double)pauses->count,
                 (double)pauses->longest.processor_ns / 1e6, (double)pauses->longest.clock_ns / 1e6,
                 map->live_count > 0 ? (double)live_map_bytes(map) / (double)map->live_count : 0);
}

int main(int argc, char **argv)
{
    const uint64_t million = argc > 1 ? strtoull(argv[1], NULL, 10) : 100;
    const uint64_t blocks = million * 1000000 / BATCH * BATCH;
    struct live_map map;
    live_map_init(&map, 42);
    (void)printf("live blocks  way   ns/block  longest, ms  by the clock  bytes/block\n");
    struct pauses pauses = {0};
    for (uint64_t done = 0, shown = 100000; done < blocks;) {
        const struct moment before = this_moment();
        add(&map, done);
        note(&pauses, &before);
        done += BATCH;
        if (done >= shown || done == blocks) {
            print(&map, "up", &pauses);
            pauses = (struct pauses){0};
            shown *= 10;
        }
    }
    for (uint64_t done = 0; done < blocks; done += BATCH) {
        const struct moment before = this_moment();
        take(&map, done);
        note(&pauses, &before);
    }
    print(&map, "down", &pauses);
    live_map_release(&map);
    return 0;
}
