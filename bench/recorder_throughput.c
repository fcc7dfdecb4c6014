// SPDX-License-Identifier: MIT
// recorder_throughput: measures the nanoseconds per record of the recorder, without a running
// program.
//
// Writes lanes as recorded threads would (lane_producer), then drains them. Only the drain is
// timed: ring, decoding, rows, series, peak. Each record says that a row allocated a block and
// freed another one: a thread's book with one pair of events, the dearest case.
//
//     recorder_throughput [MILLION_RECORDS [STACKS [LANES]]]
//
// With STACKS, only that case is measured. Prints one line for each number of stacks and lanes.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/bucket.h"
#include "recorder/ingest/drain.h"
#include "recorder/session/session_create.h"
#include "target/producer/lane_producer.h"

enum {
    STACK_DEPTH = 12,
    LANES_MAX = 4,
    BATCH_RECORDS = 3000, // of a lane, between two passes
};

struct bench {
    struct session session;
    struct aggregator aggregator;
    struct drain drain;
    struct lane_producer lanes[LANES_MAX];
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

static void put(struct lane_producer *lane, const uint64_t *words, size_t count)
{
    uint64_t *to = lane_producer_reserve(lane, count);
    if (to == NULL) {
        must(ERR_DEAD);
    }
    for (size_t i = 0; i < count; i++) {
        to[i] = words[i];
    }
    lane_producer_advance(lane, count);
}

static uint32_t row_of(const struct bench *b, uint32_t lane, uint32_t slot)
{
    return 1 + lane * b->stacks + slot;
}

static void put_pair(struct bench *b, uint32_t lane)
{
    const uint64_t random = next_random(b);
    const uint32_t slot = (uint32_t)(random % b->stacks);
    const uint64_t size = 16 + slot % 7 * 16 + (random >> 32 & 15);
    const uint64_t cell = book_cell_with(0, size);
    const struct book_counter counter = {.row = row_of(b, lane, slot),
                                         .sizes_used = 1,
                                         .sizes = {cell},
                                         .size_buckets = {(uint8_t)bucket_of(size)},
                                         .lives_used = 1,
                                         .lives = {cell},
                                         .life_buckets = {(uint8_t)bucket_of(random >> 40 & 7)}};
    uint64_t words[BOOK_WORDS_MAX];
    put(b->lanes + lane, words, book_record(&counter, words));
}

// Advance the clock, publish everything, and let the recorder read it.
static void drain_all(struct bench *b)
{
    for (unsigned i = 0; i < b->lane_count; i++) {
        lane_producer_publish(&b->lanes[i]);
    }
    bool was_busy = true;
    const uint64_t before = now_ns();
    must(drain_pass(&b->drain, b->clock_ms, false, &was_busy));
    b->spent_ns += now_ns() - before;
    b->clock_ms++;
    atomic_store(&b->session.header->clock_ms, b->clock_ms);
    for (unsigned i = 0; i < b->lane_count; i++) {
        (void)lane_producer_tick(&b->lanes[i]);
    }
}

static void open_lane(struct bench *b, uint32_t index)
{
    struct lane_producer *lane = b->lanes + index;
    struct lane_header *header = session_lane(b->session.memory, index);
    header->process_index = 0;
    header->thread_id = (uint32_t)getpid();
    atomic_store(&header->ring_bytes, LANE_RING_BYTES_MAX);
    atomic_store(&header->state, LANE_ACTIVE);
    atomic_fetch_or(&b->session.header->lane_bitmap[0], (uint64_t)1 << index);
    lane_producer_init(lane, b->session.header, header);
    lane->ring_bytes = LANE_RING_BYTES_MAX; // the size of a busy thread's ring
    lane->soft_limit = LANE_RING_BYTES_MAX;
    for (uint32_t slot = 0; slot < b->stacks; slot++) {
        uint64_t *frames =
            lane_producer_begin_stack(lane, slot, WIRE_STACK_HAS_SLOT, 0, STACK_DEPTH);
        for (uint32_t i = 0; i < STACK_DEPTH; i++) {
            frames[i] = 0x400000 + (slot >> i) * 64 + i;
        }
        lane_producer_advance(lane, lane_stack_words(STACK_DEPTH));
        put(lane, (uint64_t[]){wire_row(slot, row_of(b, index, slot), 0)}, 1);
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
    must(aggregator_init(&b->aggregator));
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

static double read_records(struct bench *b, uint64_t records)
{
    uint64_t done = 0;
    while (done < records) {
        for (uint32_t i = 0; i < b->lane_count; i++) {
            for (int k = 0; k < BATCH_RECORDS; k++) {
                put_pair(b, i);
            }
            done += BATCH_RECORDS;
        }
        drain_all(b);
    }
    return (double)b->spent_ns / (double)done;
}

struct bench_case {
    uint32_t stacks;
    unsigned lanes;
};

static void measure(const struct bench_case *what, uint64_t records)
{
    struct bench b;
    open_bench(&b, what->lanes, what->stacks);
    (void)printf("%6" PRIu32 "  %5u  %9.1f\n", what->stacks, what->lanes,
                 read_records(&b, records));
    close_bench(&b);
}

static uint64_t number(int argc, char **argv, int at, uint64_t otherwise)
{
    return argc > at ? strtoull(argv[at], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    static const struct bench_case cases[] = {{10, 1}, {1000, 1}, {20000, 1}, {10, 2}, {1000, 4}};
    const uint64_t records = number(argc, argv, 1, 10) * 1000000u;
    const struct bench_case only = {.stacks = (uint32_t)number(argc, argv, 2, 0),
                                    .lanes = (unsigned)number(argc, argv, 3, 1)};
    if (only.lanes < 1 || only.lanes > LANES_MAX) {
        (void)fprintf(stderr, "recorder_throughput: 1 to %d lanes\n", LANES_MAX);
        return 1;
    }
    (void)printf("stacks  lanes  ns/record\n");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) && only.stacks == 0; i++) {
        measure(&cases[i], records);
    }
    if (only.stacks != 0) {
        measure(&only, records);
    }
    return 0;
}
