// SPDX-License-Identifier: MIT
// draw_history: makes a recording of events that follow from a seed, as the recorder does.
//
//   draw_history OUT SEED EVENTS LEVEL
//
// Two processes with three threads each allocate, free and move blocks, and map memory. One process
// executes another program; then both end. LEVEL above 0: some blocks are chosen by a level of
// sampling (sampling_level.h) up to that. The same arguments give the same recording on every
// machine.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregate/test_support/test_heap.h"
#include "base/compiler.h"
#include "base/test_support/random_numbers.h"
#include "recorder/output/aggregator_snapshot.h"
#include "recording/write/recording_writer.h"
#include "session/books/sampling_level.h"

enum {
    PROCESSES = 2,
    THREADS = 3, // of each process
    FRAMES = 9,
    NODES = 24,
    ADDRESSES = 500,
    TEXT_BYTES = 32,
};

struct thread {
    struct aggregator_thread state;
    uint64_t latest; // the block that its latest event allocated; 0: none
    bool has_scope[2];
};

struct history {
    struct aggregator aggregator;
    struct block_list blocks;
    struct test_heap heap;
    struct aggregator_process *processes[PROCESSES];
    struct thread threads[PROCESSES][THREADS];
    bool is_live[PROCESSES][ADDRESSES];
    uint32_t nodes[NODES];
    uint64_t random;
    uint64_t now_ms;
    uint64_t number;            // of the latest event
    uint64_t scope_peaks_bytes; // added up
    uint32_t level;
};

static void expect_ok(enum err problem)
{
    if (problem != ERR_OK) {
        (void)fprintf(stderr, "draw_history: %s\n", err_name(problem));
        exit(1);
    }
}

static uint64_t below(struct history *h, uint64_t bound)
{
    return next_random(&h->random) % bound;
}

static struct bytes bytes_of(const char *text)
{
    return (struct bytes){.data = (const uint8_t *)text, .len = strlen(text)};
}

static void make_stacks(struct history *h)
{
    struct stack_table *stacks = &h->aggregator.stacks;
    uint32_t modules[2];
    uint32_t frames[FRAMES];
    expect_ok(
        stack_table_module(stacks, bytes_of("/bin/history"), bytes_of("\1\2\3"), &modules[0]));
    expect_ok(stack_table_module(stacks, bytes_of("/lib/libpast.so"), bytes_of(""), &modules[1]));
    for (uint32_t i = 0; i < FRAMES; i++) {
        expect_ok(
            stack_table_frame(stacks, modules[i % 2], 0x1000 + (uint64_t)i * 16, 0, &frames[i]));
    }
    h->nodes[0] = 0;
    for (uint32_t i = 1; i < NODES; i++) {
        const uint32_t parent = h->nodes[below(h, i)];
        expect_ok(stack_table_node(stacks, parent, frames[below(h, FRAMES)], &h->nodes[i]));
    }
}

static void begin_process(struct history *h, uint32_t at, uint32_t flags)
{
    const struct rec_process what = {.pid = 100 + at,
                                     .parent_pid = at == 0 ? 1 : 100,
                                     .flags = flags,
                                     .start_ms = h->now_ms,
                                     .exit_status = -1};
    expect_ok(aggregator_process_begin(&h->aggregator, &what, &h->processes[at]));
    for (uint32_t i = 0; i < THREADS; i++) {
        char name[TEXT_BYTES];
        struct thread *thread = &h->threads[at][i];
        *thread = (struct thread){0};
        (void)snprintf(name, sizeof(name), "thread %u", i);
        aggregator_thread_begin(&thread->state, h->processes[at], at * THREADS + i,
                                100 + at + 10 * i, h->now_ms);
        expect_ok(aggregator_thread_name(&h->aggregator, &thread->state, bytes_of(name)));
    }
    memset(h->is_live[at], 0, sizeof(h->is_live[at]));
}

static void end_process(struct history *h, uint32_t at)
{
    for (uint32_t i = 0; i < THREADS; i++) {
        aggregator_thread_end(&h->aggregator, &h->threads[at][i].state,
                              h->aggregator.totals.now_ms);
    }
    h->processes[at]->record.exit_status = (int32_t)at;
    expect_ok(test_heap_end_process(&h->heap, h->processes[at], h->now_ms));
}

static uint64_t address_of(uint64_t index)
{
    return 0x10000 + index * 4096;
}

static uint64_t draw_size(struct history *h)
{
    return below(h, (uint64_t)1 << (1 + below(h, 18)));
}

static uint32_t draw_row(struct history *h, struct thread *thread)
{
    uint32_t row = 0;
    expect_ok(aggregator_row(&h->aggregator, &thread->state, h->nodes[below(h, NODES)], &row));
    return row;
}

static void allocate(struct history *h, struct thread *thread, uint64_t address)
{
    const uint32_t row = draw_row(h, thread);
    const uint64_t size = draw_size(h);
    const bool has_level = below(h, 10) < 5 && h->level > 0;
    const uint64_t interval = sampling_interval(has_level ? (uint32_t)below(h, h->level + 1) : 0);
    const uint64_t weight = block_weight(size, interval);
    struct aggregator_sampling *sampling = &h->aggregator.sampling;
    sampling->lane_interval_bytes = max_u64(sampling->lane_interval_bytes, interval);
    thread->latest = address;
    if (weight > 1 && below(h, weight) != 0) {
        sampling->unsampled_allocations++;
        sampling->unsampled_bytes += size;
        return;
    }
    expect_ok(test_heap_choose(&h->heap, &thread->state, address, row, size, (uint32_t)weight));
}

static void take(struct history *h, struct thread *thread, uint64_t address, uint64_t new_address)
{
    const bool is_temporary = thread->latest == address;
    thread->latest = new_address;
    if (new_address == 0) {
        expect_ok(test_heap_free(&h->heap, &thread->state, address, is_temporary));
        return;
    }
    const uint64_t size = draw_size(h);
    const struct test_block moved = {
        .address = new_address, .size_bytes = size, .row = draw_row(h, thread)};
    expect_ok(test_heap_move(&h->heap, &thread->state, address, is_temporary, &moved));
}

static void use_block(struct history *h, uint32_t at, struct thread *thread)
{
    const uint64_t place = below(h, ADDRESSES);
    bool *is_live = &h->is_live[at][place];
    const bool moves = *is_live && below(h, 4) == 0;
    if (*is_live) {
        take(h, thread, address_of(place), moves ? address_of(place) : 0);
    } else {
        allocate(h, thread, address_of(place));
    }
    *is_live = !*is_live || moves;
}

// Allocate blocks, and free each at once.
static void use_briefly(struct history *h, uint32_t at, struct thread *thread)
{
    const uint64_t place = below(h, ADDRESSES);
    const uint64_t count = h->is_live[at][place] ? 0 : 1 + below(h, 20);
    for (uint64_t i = 0; i < count; i++) {
        allocate(h, thread, address_of(place));
        take(h, thread, address_of(place), 0);
    }
}

static void map_memory(struct history *h, uint32_t at)
{
    const uint64_t pages = 1 + below(h, 64);
    const uint64_t place = ((uint64_t)1 << 40) + below(h, 30) * 64 * 4096;
    const bool unmaps = below(h, 3) == 0;
    const struct wire_mapping what = {.address = unmaps ? 0 : place,
                                      .size_bytes = unmaps ? 0 : pages * 4096,
                                      .number = h->number,
                                      .old_address = unmaps ? place : 0,
                                      .old_size_bytes = unmaps ? pages * 4096 : 0,
                                      .old_number = unmaps ? h->number : 0,
                                      .kind = 1 + (uint32_t)below(h, WIRE_MAPPING_SAME)};
    expect_ok(
        aggregator_mapping(&h->aggregator, h->processes[at], &what, h->nodes[below(h, NODES)]));
}

// Begin or end a scope in which a thread's peak is followed.
static void follow_peak(struct history *h, struct thread *thread)
{
    const uint32_t scope = (uint32_t)below(h, 2);
    if (thread->has_scope[scope]) {
        h->scope_peaks_bytes += aggregator_scope_peak(&h->aggregator, &thread->state, scope);
        aggregator_end_scope(&h->aggregator, &thread->state, scope);
    } else {
        expect_ok(aggregator_begin_scope(&h->aggregator, &thread->state, scope));
    }
    thread->has_scope[scope] = !thread->has_scope[scope];
}

static void advance(struct history *h, struct thread *thread)
{
    if (below(h, 8) == 0) {
        h->now_ms += below(h, 40);
    }
    h->number++;
    expect_ok(aggregator_tick(&h->aggregator, h->now_ms));
    if (thread->state.tick_ms < h->now_ms) {
        thread->state.tick_ms = h->now_ms;
    }
}

static void step_of(struct history *h, uint32_t at)
{
    struct thread *thread = &h->threads[at][below(h, THREADS)];
    char text[TEXT_BYTES];
    advance(h, thread);
    switch (below(h, 100)) {
    case 0:
        map_memory(h, at);
        break;
    case 1:
        expect_ok(aggregator_adhoc(&h->aggregator, h->processes[at], h->nodes[below(h, 4)],
                                   below(h, 50)));
        break;
    case 2: // of a block that nobody allocated
        expect_ok(test_heap_free(&h->heap, &thread->state, 0x77, false));
        thread->latest = 0;
        break;
    case 3:
        (void)snprintf(text, sizeof(text), "mark at %u", (unsigned)h->now_ms);
        if (below(h, 20) == 0) {
            expect_ok(mark_list_add_of_program(&h->aggregator.marks, &h->aggregator.strings,
                                               h->now_ms, REC_MARK_PHASE, bytes_of(text)));
        }
        break;
    case 4:
        follow_peak(h, thread);
        break;
    default:
        if (below(h, 6) == 0) {
            use_briefly(h, at, thread);
        } else {
            use_block(h, at, thread);
        }
        break;
    }
}

static void play(struct history *h, uint64_t events)
{
    make_stacks(h);
    begin_process(h, 0, REC_PROCESS_MAIN);
    for (uint64_t i = 0; i < events / 10; i++) {
        step_of(h, 0);
    }
    begin_process(h, 1, REC_PROCESS_FORKED);
    expect_ok(aggregator_mapping_inherit(&h->aggregator, h->processes[1], h->processes[0]));
    for (uint64_t i = 0; i < events; i++) {
        step_of(h, (uint32_t)below(h, PROCESSES));
        if (i == events / 2) {
            h->processes[1]->record.flags |= REC_PROCESS_EXECED;
            end_process(h, 1);
            begin_process(h, 1, 0);
        }
    }
    h->now_ms += 100;
    end_process(h, 1);
    h->now_ms += 100;
    end_process(h, 0);
}

static void save(struct history *h, const char *path, char **argv)
{
    CLEANUP(aggregator_snapshot_release) struct aggregator_snapshot snapshot = {0};
    struct err_info info = {0};
    const struct aggregator_snapshot_facts facts = {.state = REC_STATE_FINISHED,
                                                    .pid = 100,
                                                    .max_frames = 64,
                                                    .start_unix_ns = 1000000000,
                                                    .runtime_ms = h->now_ms,
                                                    .tool_version = "test",
                                                    .program = "/bin/history",
                                                    .argv = argv,
                                                    .blocks = &h->blocks,
                                                    .marks = h->aggregator.marks.marks.items,
                                                    .mark_count = h->aggregator.marks.marks.len};
    expect_ok(aggregator_snapshot_take(&h->aggregator, NULL, NULL, &facts, &snapshot));
    struct rec_meta *meta = &snapshot.recording.meta; // nothing of this machine
    meta->host = meta->kernel = meta->libc = 0;
    meta->memory_bytes = 0;
    meta->cpu_count = 0;
    const struct table_supply supply = row_history_supply(&snapshot.history);
    expect_ok(recording_write(&snapshot.recording, path,
                              &(struct recording_write_options){.supply = &supply}, &info));
}

int main(int argc, char **argv)
{
    static struct history h;
    if (argc != 5) {
        (void)fprintf(stderr, "usage: draw_history OUT SEED EVENTS LEVEL\n");
        return 2;
    }
    h.random = strtoull(argv[2], NULL, 10);
    h.level = (uint32_t)strtoul(argv[4], NULL, 10);
    h.now_ms = 1;
    h.number = 1;
    expect_ok(aggregator_init(&h.aggregator));
    h.blocks = (struct block_list){.seed = 1, .rows = &h.aggregator.totals.rows};
    h.aggregator.budget.samples_alone = true;
    h.heap = (struct test_heap){.aggregator = &h.aggregator, .list = &h.blocks};
    play(&h, strtoull(argv[3], NULL, 10));
    (void)printf("peaks of scopes: %llu bytes\n", (unsigned long long)h.scope_peaks_bytes);
    save(&h, argv[1], (char *[]){argv[2], argv[3], NULL});
    test_heap_release(&h.heap);
    block_list_release(&h.blocks);
    aggregator_release(&h.aggregator);
    return 0;
}
