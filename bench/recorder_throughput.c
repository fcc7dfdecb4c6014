// SPDX-License-Identifier: MIT
// recorder_throughput: measures the nanoseconds per event of the recorder, without a running
// program.
//
// Writes lanes as recorded threads would (lane_producer), then drains them. Only the drain is
// timed: ring, decoding, live map, rows, series, peak. Each event pair frees a random block and
// allocates another one at its address, so that the number of live blocks is constant. The first
// figure is the time in which the live blocks are allocated.
//
//     recorder_throughput [MILLION_EVENTS [STACKS [LIVE_BLOCKS [LANES]]]]
//
// With LIVE_BLOCKS, only that case is measured.
// Prints one line for each number of live blocks and lanes: ns per event, and bytes per live block.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "aggregate/test_support/live_map_bytes.h"
#include "recorder/ingest/drain.h"
#include "recorder/session/session_create.h"
#include "target/producer/lane_producer.h"

enum {
    STACK_DEPTH = 12,
    LANES_MAX = 4,
    BATCH_EVENTS = 12000, // of a lane, between two passes: about the events of a millisecond
    ADDRESS_STEP = 48,
};

struct bench_lane {
    struct lane_producer producer;
    uint64_t base; // address of its first block
    uint64_t live_count;
};

struct bench {
    struct session session;
    struct aggregator aggregator;
    struct drain drain;
    struct bench_lane lanes[LANES_MAX];
    unsigned lane_count;
    uint32_t stacks;
    uint64_t random;
    uint64_t clock_ms;
    uint64_t spent_ns;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t next_random(struct bench *b)
{
    b->random ^= b->random << 13;
    b->random ^= b->random >> 7;
    b->random ^= b->random << 17;
    return b->random;
}

static void must(enum err err)
{
    if (err != ERR_OK) {
        (void)fprintf(stderr, "recorder_throughput: %s\n", err_name(err));
        exit(1);
    }
}

static void put(struct bench_lane *lane, const uint64_t *words, size_t count)
{
    uint64_t *to = lane_producer_reserve(&lane->producer, count);
    if (to == NULL) {
        must(ERR_DEAD);
    }
    for (size_t i = 0; i < count; i++) {
        to[i] = words[i];
    }
    lane_producer_advance(&lane->producer, count);
}

static void put_allocation(struct bench *b, struct bench_lane *lane, uint64_t address)
{
    const uint64_t random = next_random(b);
    const uint32_t slot = (uint32_t)(random % b->stacks);
    const uint64_t size = 16 + slot % 7 * 16 + (random >> 32 & 15);
    put(lane, (uint64_t[]){wire_word(WIRE_ALLOC, address), wire_slot_size(slot, size)}, 2);
}

// Advance the clock, publish everything, and let the recorder read it.
static void drain_all(struct bench *b)
{
    for (unsigned i = 0; i < b->lane_count; i++) {
        lane_producer_publish(&b->lanes[i].producer);
    }
    bool was_busy = true;
    const uint64_t before = now_ns();
    must(drain_pass(&b->drain, b->clock_ms, false, &was_busy));
    b->spent_ns += now_ns() - before;
    b->clock_ms++;
    atomic_store(&b->session.header->clock_ms, b->clock_ms);
    for (unsigned i = 0; i < b->lane_count; i++) {
        (void)lane_producer_tick(&b->lanes[i].producer);
    }
}

static void open_lane(struct bench *b, uint32_t index)
{
    struct bench_lane *lane = b->lanes + index;
    struct lane_header *header = session_lane(b->session.memory, index);
    header->process_index = 0;
    header->thread_id = (uint32_t)getpid();
    atomic_store(&header->ring_bytes, LANE_RING_BYTES_MAX);
    atomic_store(&header->state, LANE_ACTIVE);
    atomic_fetch_or(&b->session.header->lane_bitmap[0], (uint64_t)1 << index);
    lane_producer_init(&lane->producer, b->session.header, header);
    lane->producer.ring_bytes = LANE_RING_BYTES_MAX; // the size of a busy thread's ring
    lane->producer.soft_limit = LANE_RING_BYTES_MAX;
    lane->base = 0x555500000000 + ((uint64_t)index << 40);
    for (uint32_t slot = 0; slot < b->stacks; slot++) {
        uint64_t *frames =
            lane_producer_begin_stack(&lane->producer, slot, WIRE_STACK_HAS_SLOT, 0, STACK_DEPTH);
        for (uint32_t i = 0; i < STACK_DEPTH; i++) {
            frames[i] = 0x400000 + (slot >> i) * 64 + i;
        }
        lane_producer_advance(&lane->producer, lane_stack_words(STACK_DEPTH));
        if (slot % 100 == 99) {
            drain_all(b);
        }
    }
}

static void open_bench(struct bench *b, unsigned lane_count, uint32_t stacks)
{
    *b = (struct bench){.random = 88172645463325252u, .stacks = stacks};
    must(session_create(&(struct session_options){.max_frames = 256}, &b->session, NULL));
    atomic_store(&b->session.header->state, SESSION_RUNNING);
    must(aggregator_init(&b->aggregator, 42));
    must(drain_init(&b->drain, &b->session, &b->aggregator, NULL));
    struct process_slot *slot = session_process(b->session.memory, 0);
    slot->pid = (uint32_t)getpid();
    atomic_store(&slot->state, PROCESS_ACTIVE);
    for (uint32_t i = 0; i < lane_count; i++) {
        b->lane_count = i + 1;
        open_lane(b, i);
    }
    b->spent_ns = 0;
}

static void close_bench(struct bench *b)
{
    drain_release(&b->drain);
    aggregator_release(&b->aggregator);
    session_release(&b->session);
}

static double grow(struct bench *b, uint64_t live_blocks)
{
    const uint64_t each = live_blocks / b->lane_count;
    for (uint64_t done = 0; done < each;) {
        const uint64_t batch = each - done < BATCH_EVENTS ? each - done : BATCH_EVENTS;
        for (unsigned i = 0; i < b->lane_count; i++) {
            struct bench_lane *lane = b->lanes + i;
            for (uint64_t k = 0; k < batch; k++) {
                put_allocation(b, lane, lane->base + (done + k) * ADDRESS_STEP);
            }
            lane->live_count += batch;
        }
        done += batch;
        drain_all(b);
    }
    return (double)b->spent_ns / (double)live_blocks;
}

static double churn(struct bench *b, uint64_t events)
{
    b->spent_ns = 0;
    uint64_t done = 0;
    while (done < events) {
        for (unsigned i = 0; i < b->lane_count; i++) {
            struct bench_lane *lane = b->lanes + i;
            for (int k = 0; k < BATCH_EVENTS / 2; k++) {
                const uint64_t address =
                    lane->base + next_random(b) % lane->live_count * ADDRESS_STEP;
                put(lane, (uint64_t[]){wire_word(WIRE_FREE, address)}, 1);
                put_allocation(b, lane, address);
            }
            done += BATCH_EVENTS;
        }
        drain_all(b);
    }
    return (double)b->spent_ns / (double)done;
}

struct bench_case {
    uint64_t live_blocks;
    unsigned lanes;
};

static void measure(const struct bench_case *what, uint64_t events, uint32_t stacks)
{
    struct bench b;
    open_bench(&b, what->lanes, stacks);
    const double grow_ns = grow(&b, what->live_blocks);
    const double churn_ns = churn(&b, events);
    const struct live_map *live = &b.aggregator.processes.items[0]->live;
    (void)printf("%11" PRIu64 "  %5u  %13.1f  %14.1f  %11.1f\n", what->live_blocks, what->lanes,
                 grow_ns, churn_ns, (double)live_map_bytes(live) / (double)live->live_count);
    close_bench(&b);
}

static uint64_t number(int argc, char **argv, int at, uint64_t otherwise)
{
    return argc > at ? strtoull(argv[at], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = {{1000, 1},     {100000, 1}, {1000000, 1},
                                              {10000000, 1}, {1000, 2},   {1000000, 4}};
    const uint64_t events = number(argc, argv, 1, 20) * 1000000u;
    const uint32_t stacks = (uint32_t)number(argc, argv, 2, 1000);
    const struct bench_case only = {.live_blocks = number(argc, argv, 3, 0),
                                    .lanes = (unsigned)number(argc, argv, 4, 1)};
    if (only.lanes < 1 || only.lanes > LANES_MAX) {
        (void)fprintf(stderr, "recorder_throughput: 1 to %d lanes\n", LANES_MAX);
        return 1;
    }
    (void)printf("live blocks  lanes  grow ns/event  churn ns/event  bytes/block\n");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) && only.live_blocks == 0; i++) {
        measure(&cases[i], events, stacks);
    }
    if (only.live_blocks != 0) {
        measure(&only, events, stacks);
    }
    return 0;
}
