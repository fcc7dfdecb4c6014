// SPDX-License-Identifier: MIT
// aggregator against a naive model that replays the same events and visits every block and every
// row each time. All figures must be equal, in any order of frees between threads.
#include "aggregate/aggregator.h"
#include "aggregate/books/aggregator_book.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregate/test_support/test_heap.h"
#include "base/compiler.h"
#include "base/test_support/random_numbers.h"
#include "recorder/output/test_snapshot.h"

enum {
    LANES_MAX = 4,
    STACKS = 5,
    ROWS_MAX = LANES_MAX * STACKS,
    ADDRESSES = 64,
    EVENTS = 6000,
    TICK_EVENTS = 23, // events of all lanes in one tick, on average
};

enum event_kind {
    EVENT_ALLOCATE,
    EVENT_FREE,
    EVENT_REALLOCATE,
};

struct event {
    enum event_kind kind;
    uint32_t lane;
    uint64_t tick;
    uint64_t address; // ALLOCATE, REALLOCATE: of the new block; FREE: of the freed one
    uint64_t old_address;
    uint64_t size_bytes;
    uint32_t stack;
    bool is_temporary; // the freed block is at the address of the thread's latest allocation
};

struct model_row {
    uint64_t allocations;
    uint64_t allocated_bytes;
    uint64_t frees;
    uint64_t freed_bytes;
    uint64_t temporary;
    uint64_t temporary_bytes;
    uint64_t own_peak_bytes;
    uint64_t at_peak_bytes;
    uint64_t at_peak_blocks;
};

struct model_block {
    bool is_live;
    uint64_t size_bytes;
    uint32_t row;
};

struct model {
    struct model_block blocks[ADDRESSES]; // by address
    struct model_row rows[ROWS_MAX];
    uint64_t peak_bytes;
    uint64_t latest[LANES_MAX]; // where the thread's latest event allocated, else 0
};

static uint64_t address_of(uint32_t index)
{
    return 0x10000 + (uint64_t)index * 16;
}

static uint32_t index_of(uint64_t address)
{
    return (uint32_t)((address - 0x10000) / 16);
}

static uint64_t live_bytes_of(const struct model *model)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < ADDRESSES; i++) {
        sum += model->blocks[i].is_live ? model->blocks[i].size_bytes : 0;
    }
    return sum;
}

static void model_snapshot_at_peak(struct model *model)
{
    uint64_t live = live_bytes_of(model);
    if (live > model->peak_bytes) {
        model->peak_bytes = live;
        for (size_t i = 0; i < ROWS_MAX; i++) {
            model->rows[i].at_peak_bytes = 0;
            model->rows[i].at_peak_blocks = 0;
        }
        for (size_t i = 0; i < ADDRESSES; i++) {
            if (model->blocks[i].is_live) {
                model->rows[model->blocks[i].row].at_peak_bytes += model->blocks[i].size_bytes;
                model->rows[model->blocks[i].row].at_peak_blocks++;
            }
        }
    }
}

static void model_free(struct model *model, uint32_t lane, uint64_t address)
{
    struct model_block *block = model->blocks + index_of(address);
    struct model_row *row = model->rows + block->row;
    if (model->latest[lane] == address && block->row / STACKS == lane) {
        row->temporary++;
        row->temporary_bytes += block->size_bytes;
    }
    model->latest[lane] = 0;
    row->frees++;
    row->freed_bytes += block->size_bytes;
    block->is_live = false;
}

static void model_allocate(struct model *model, const struct event *event)
{
    uint32_t index = event->lane * STACKS + event->stack;
    struct model_row *row = model->rows + index;
    model->blocks[index_of(event->address)] =
        (struct model_block){.is_live = true, .size_bytes = event->size_bytes, .row = index};
    row->allocations++;
    row->allocated_bytes += event->size_bytes;
    if (row->allocated_bytes - row->freed_bytes > row->own_peak_bytes) {
        row->own_peak_bytes = row->allocated_bytes - row->freed_bytes;
    }
    model->latest[event->lane] = event->address;
    model_snapshot_at_peak(model);
}

static void model_apply(struct model *model, const struct event *event)
{
    switch (event->kind) {
    case EVENT_ALLOCATE:
        model_allocate(model, event);
        break;
    case EVENT_FREE:
        model_free(model, event->lane, event->address);
        break;
    case EVENT_REALLOCATE:
        model_free(model, event->lane, event->old_address);
        model_allocate(model, event);
        break;
    }
}

// What the threads send.
static void mark_temporary(struct event *events, size_t count)
{
    uint64_t latest[LANES_MAX] = {0};
    for (size_t i = 0; i < count; i++) {
        struct event *e = events + i;
        const uint64_t freed = e->kind == EVENT_REALLOCATE ? e->old_address : e->address;
        e->is_temporary = e->kind != EVENT_ALLOCATE && latest[e->lane] == freed;
        latest[e->lane] = e->kind != EVENT_FREE ? e->address : 0;
    }
}

// Make a random history: any thread allocates free addresses and frees live ones.
static void make_history(struct event *events, size_t count, uint32_t lanes, uint64_t seed)
{
    bool is_live[ADDRESSES] = {false};
    uint64_t random = seed * 0x9e3779b97f4a7c15ULL + 1;
    uint64_t tick = 1;
    for (size_t i = 0; i < count; i++) {
        tick += next_random(&random) % TICK_EVENTS == 0;
        uint32_t at = (uint32_t)(next_random(&random) % ADDRESSES);
        struct event *e = events + i;
        *e = (struct event){.lane = (uint32_t)(next_random(&random) % lanes),
                            .tick = tick,
                            .address = address_of(at),
                            .size_bytes = next_random(&random) % 1000,
                            .stack = (uint32_t)(next_random(&random) % STACKS)};
        if (!is_live[at]) {
            e->kind = EVENT_ALLOCATE;
        } else {
            e->kind = next_random(&random) % 4 == 0 ? EVENT_REALLOCATE : EVENT_FREE;
            is_live[at] = false;
        }
        if (e->kind == EVENT_REALLOCATE) {
            uint32_t to = (uint32_t)(next_random(&random) % ADDRESSES);
            to = is_live[to] ? at : to;
            e->old_address = e->address;
            e->address = address_of(to);
            at = to;
        }
        if (e->kind != EVENT_FREE) {
            is_live[at] = true;
        }
    }
    mark_temporary(events, count);
}

struct fixture {
    struct aggregator aggregator;
    struct test_heap heap;
    struct aggregator_process *process;
    struct aggregator_thread threads[LANES_MAX];
    uint32_t rows[ROWS_MAX]; // of the model -> of the aggregator
};

static void open_fixture(struct fixture *f, uint32_t lanes)
{
    assert_int_equal(aggregator_init(&f->aggregator), ERR_OK);
    f->heap.aggregator = &f->aggregator;
    const struct rec_process record = {.pid = 1, .flags = REC_PROCESS_MAIN, .exit_status = -1};
    assert_int_equal(aggregator_process_begin(&f->aggregator, &record, &f->process), ERR_OK);
    for (uint32_t lane = 0; lane < lanes; lane++) {
        aggregator_thread_begin(&f->threads[lane], f->process, lane, 100 + lane, 0);
        for (uint32_t stack = 0; stack < STACKS; stack++) {
            uint32_t frame = 0;
            uint32_t node = 0;
            assert_int_equal(
                stack_table_frame(&f->aggregator.stacks, REC_NONE, stack + 1, 0, &frame), ERR_OK);
            assert_int_equal(stack_table_node(&f->aggregator.stacks, 0, frame, &node), ERR_OK);
            assert_int_equal(aggregator_row(&f->aggregator, &f->threads[lane], node,
                                            &f->rows[lane * STACKS + stack]),
                             ERR_OK);
        }
    }
}

static void close_fixture(struct fixture *f)
{
    test_heap_release(&f->heap);
    aggregator_release(&f->aggregator);
}

static void feed(struct fixture *f, const struct event *e)
{
    struct aggregator_thread *thread = f->threads + e->lane;
    uint32_t row = f->rows[e->lane * STACKS + e->stack];
    thread->tick_ms = e->tick;
    assert_int_equal(aggregator_tick(&f->aggregator, e->tick), ERR_OK);
    enum err err = ERR_OK;
    switch (e->kind) {
    case EVENT_ALLOCATE:
        err = test_heap_allocate(&f->heap, thread, e->address, row, e->size_bytes);
        break;
    case EVENT_FREE:
        err = test_heap_free(&f->heap, thread, e->address, e->is_temporary);
        break;
    case EVENT_REALLOCATE:
        err = test_heap_move(
            &f->heap, thread, e->old_address, e->is_temporary,
            &(struct test_block){.address = e->address, .row = row, .size_bytes = e->size_bytes});
        break;
    }
    assert_int_equal(err, ERR_OK);
}

static void compare_rows(const struct fixture *f, const struct model *model, uint32_t lanes)
{
    for (uint32_t i = 0; i < lanes * STACKS; i++) {
        const struct rec_row *got = f->aggregator.totals.rows.rows.items + f->rows[i];
        const struct model_row *want = model->rows + i;
        assert_int_equal(got->allocations, want->allocations);
        assert_int_equal(got->allocated_bytes, want->allocated_bytes);
        assert_int_equal(got->frees, want->frees);
        assert_int_equal(got->freed_bytes, want->freed_bytes);
        assert_int_equal(got->temporary, want->temporary);
        assert_int_equal(got->temporary_bytes, want->temporary_bytes);
        assert_int_equal(got->own_peak_bytes, want->own_peak_bytes);
        assert_int_equal(got->peak_bytes, want->at_peak_bytes);
        assert_int_equal(got->peak_blocks, want->at_peak_blocks);
    }
}

// Invariants of every history: nothing is lost or counted twice.
static void compare_counts(const struct fixture *f, const struct model *model, uint32_t lanes)
{
    uint64_t frees = 0;
    uint64_t live_blocks = 0;
    for (uint32_t i = 0; i < lanes * STACKS; i++) {
        const struct rec_row *got = f->aggregator.totals.rows.rows.items + f->rows[i];
        assert_int_equal(got->allocations, model->rows[i].allocations);
        assert_int_equal(got->allocated_bytes, model->rows[i].allocated_bytes);
        frees += model->rows[i].frees;
    }
    for (size_t i = 0; i < ADDRESSES; i++) {
        live_blocks += model->blocks[i].is_live;
    }
    assert_int_equal(f->aggregator.totals.sums.frees, frees);
    assert_int_equal(f->aggregator.totals.live_blocks, live_blocks);
    assert_int_equal(f->process->live_blocks, live_blocks);
    assert_int_equal(f->aggregator.unknown_frees, 0);
}

static void run_case(uint32_t lanes, uint64_t seed, struct event *events)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct model *model = calloc(1, sizeof(*model));
    assert_non_null(f);
    assert_non_null(model);
    make_history(events, EVENTS, lanes, seed);
    open_fixture(f, lanes);
    for (size_t i = 0; i < EVENTS; i++) {
        model_apply(model, events + i);
        feed(f, events + i);
    }
    assert_int_equal(row_table_count(&f->aggregator.totals.rows), ERR_OK);
    compare_counts(f, model, lanes);
    assert_int_equal(f->aggregator.totals.sums.live_bytes, live_bytes_of(model));
    assert_int_equal(f->aggregator.totals.peak_bytes, model->peak_bytes);
    whole_snapshot_check(&f->aggregator);
    compare_rows(f, model, lanes);
    close_fixture(f);
    free(model);
    free(f);
}

static void random_histories_agree_with_the_naive_replay(void **state)
{
    (void)state;
    struct event *events = calloc(EVENTS, sizeof(*events));
    assert_non_null(events);
    for (uint32_t lanes = 1; lanes <= LANES_MAX; lanes++) {
        for (uint64_t seed = 1; seed <= 60; seed++) {
            run_case(lanes, seed, events);
        }
    }
    free(events);
}

static void what_a_thread_calls_temporary_is_counted(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *program; // a allocates, f frees, r reallocates to the next address
        uint64_t temporary;
    } cases[] = {
        {"malloc, free", "a1f1", 1},
        {"another malloc between", "a1a2f1f2", 0},
        {"the last of several", "a1a2f2f1", 1},
        {"realloc of the last one", "a1r1f2", 2},
        {"realloc of another one", "a1a3r1f3", 0},
        {"free, malloc at the same place, free", "a1f1a1f1", 2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("%s\n", cases[i].name);
        struct fixture f = {0};
        open_fixture(&f, 1);
        struct event events[8] = {0};
        size_t count = 0;
        for (const char *at = cases[i].program; *at != '\0'; at += 2) {
            uint32_t block = (uint32_t)(at[1] - '0');
            struct event *e = events + count++;
            *e = (struct event){.kind = EVENT_FREE, .address = address_of(block), .size_bytes = 8};
            if (*at == 'a') {
                e->kind = EVENT_ALLOCATE;
            } else if (*at == 'r') {
                e->kind = EVENT_REALLOCATE;
                e->old_address = e->address;
                e->address = address_of(block + 1);
            }
        }
        mark_temporary(events, count);
        for (size_t k = 0; k < count; k++) {
            feed(&f, events + k);
        }
        assert_int_equal(f.aggregator.totals.sums.temporary, cases[i].temporary);
        close_fixture(&f);
    }
}

static void a_process_that_ends_leaves_the_sum_but_not_its_rows(void **state)
{
    (void)state;
    struct fixture f = {0};
    open_fixture(&f, 1);
    struct aggregator_process *second = NULL;
    struct aggregator_thread other = {0};
    uint32_t row = 0;
    const struct rec_process record = {.pid = 2, .parent_pid = 1, .exit_status = -1};
    assert_int_equal(aggregator_process_begin(&f.aggregator, &record, &second), ERR_OK);
    assert_int_equal(second->record.parent, 0);
    aggregator_thread_begin(&other, second, 9, 200, 0);
    assert_int_equal(aggregator_row(&f.aggregator, &other, 1, &row), ERR_OK);
    assert_int_equal(test_heap_allocate(&f.heap, &other, 0x5000, row, 600), ERR_OK);
    struct event e = {
        .kind = EVENT_ALLOCATE, .address = address_of(1), .size_bytes = 500, .tick = 1};
    feed(&f, &e);
    assert_int_equal(f.aggregator.totals.peak_bytes, 1100);
    aggregator_thread_end(&f.aggregator, &other, 0);
    assert_int_equal(aggregator_process_end(
                         &f.aggregator, second,
                         &(struct aggregator_process_ending){.end_ms = f.aggregator.totals.now_ms}),
                     ERR_OK);
    assert_int_equal(f.aggregator.totals.sums.live_bytes, 500);
    assert_int_equal(second->record.left_ms, f.aggregator.totals.now_ms + 1);
    // another process is still running
    assert_int_equal(f.aggregator.totals.sums.last_ended_bytes, 0);
    whole_snapshot_check(&f.aggregator); // at the peak: 600 of the one, 500 of the other
    assert_int_equal(f.aggregator.totals.rows.rows.items[row].peak_bytes, 600);
    e = (struct event){
        .kind = EVENT_ALLOCATE, .address = address_of(2), .size_bytes = 700, .tick = 2};
    feed(&f, &e);
    assert_int_equal(f.aggregator.totals.peak_bytes, 1200);
    whole_snapshot_check(&f.aggregator); // at the new peak ended processes hold nothing
    assert_int_equal(f.aggregator.totals.rows.rows.items[row].peak_bytes, 0);
    assert_int_equal(f.aggregator.totals.rows.rows.items[row].freed_bytes,
                     0); // leaked all the same
    close_fixture(&f);
}

// Take a snapshot of a finished run with these facts.
static struct aggregator_snapshot take_snapshot(struct fixture *f,
                                                const struct aggregator_snapshot_facts *known)
{
    struct aggregator_snapshot_facts facts = *known;
    struct aggregator_snapshot snapshot = {0};
    facts.state = REC_STATE_FINISHED;
    facts.tool_version = "test";
    facts.program = "program";
    assert_int_equal(aggregator_snapshot_take(&f->aggregator, NULL, NULL, &facts, &snapshot),
                     ERR_OK);
    return snapshot;
}

// A process may end in the millisecond in which it is reaped, or the recorder's clock may be behind
// the time that the process saw.
static void the_slices_and_the_run_include_the_end_of_each_process(void **state)
{
    (void)state;
    static const uint64_t seen_ends_ms[] = {9, 7, 0};
    for (size_t i = 0; i < ARRAY_LEN(seen_ends_ms); i++) {
        struct fixture f = {0};
        open_fixture(&f, 1);
        feed(&f,
             &(struct event){
                 .kind = EVENT_ALLOCATE, .address = address_of(1), .size_bytes = 500, .tick = 5});
        aggregator_thread_end(&f.aggregator, &f.threads[0], 0);
        assert_int_equal(aggregator_process_end(&f.aggregator, f.process,
                                                &(struct aggregator_process_ending){.end_ms = 9}),
                         ERR_OK);
        struct aggregator_snapshot snapshot =
            take_snapshot(&f, &(struct aggregator_snapshot_facts){.runtime_ms = seen_ends_ms[i]});
        const struct recording *r = &snapshot.recording;
        assert_int_equal(f.aggregator.totals.now_ms, 9);
        assert_int_equal(r->slice_ms, 1);
        assert_int_equal(r->slice_count, 10);
        assert_int_equal(r->slices[8].live_bytes, 500);
        assert_int_equal(r->meta.runtime_ms, 9);
        aggregator_snapshot_release(&snapshot);
        close_fixture(&f);
    }
}

static void allocate_at(struct fixture *f, uint32_t lane, uint64_t size_bytes)
{
    uint32_t row = 0;
    assert_int_equal(aggregator_row(&f->aggregator, &f->threads[lane], 1, &row), ERR_OK);
    assert_int_equal(
        test_heap_allocate(&f->heap, &f->threads[lane], 0x100 * size_bytes, row, size_bytes),
        ERR_OK);
}

// A thread is found ended after its process's last sign of life.
static void a_thread_ends_with_its_process_at_the_latest(void **state)
{
    (void)state;
    static const uint64_t found_ms[] = {12, 9, 4};
    for (size_t i = 0; i < ARRAY_LEN(found_ms); i++) {
        struct fixture f = {0};
        open_fixture(&f, 1);
        allocate_at(&f, 0, 500);
        aggregator_thread_end(&f.aggregator, &f.threads[0], found_ms[i]);
        assert_int_equal(test_heap_end_process(&f.heap, f.process, 9), ERR_OK);
        struct aggregator_snapshot snapshot =
            take_snapshot(&f, &(struct aggregator_snapshot_facts){.runtime_ms = 20});
        assert_int_equal(snapshot.recording.threads[0].end_ms, found_ms[i] > 9 ? 9 : found_ms[i]);
        aggregator_snapshot_release(&snapshot);
        close_fixture(&f);
    }
}

static void processes_that_did_not_join_are_a_loss(void **state)
{
    (void)state;
    for (uint64_t count = 0; count <= 2; count++) {
        struct fixture f = {0};
        open_fixture(&f, 1);
        struct aggregator_snapshot snapshot =
            take_snapshot(&f, &(struct aggregator_snapshot_facts){.unjoined_count = count});
        uint64_t said = 0;
        for (size_t i = 0; i < snapshot.counters.len; i++) {
            const struct rec_counter *counter = &snapshot.counters.items[i];
            const char *name = string_table_get(&f.aggregator.strings, counter->name);
            said += strcmp(name, "unjoined_processes") == 0 && counter->kind == REC_COUNTER_LOSS
                        ? counter->value
                        : 0;
        }
        assert_int_equal(said, count);
        aggregator_snapshot_release(&snapshot);
        close_fixture(&f);
    }
}

static void an_executed_program_is_the_next_epoch_of_its_process(void **state)
{
    (void)state;
    struct fixture f = {0};
    open_fixture(&f, 1);
    f.process->record.flags |= REC_PROCESS_EXECED;
    assert_int_equal(aggregator_process_end(
                         &f.aggregator, f.process,
                         &(struct aggregator_process_ending){.end_ms = f.aggregator.totals.now_ms}),
                     ERR_OK);
    struct aggregator_process *image = NULL;
    const struct rec_process record = {.pid = 1, .exit_status = -1};
    assert_int_equal(aggregator_process_begin(&f.aggregator, &record, &image), ERR_OK);
    assert_int_equal(image->record.epoch, 1);
    assert_int_equal(f.process->record.left_ms, 1); // its image has ended
    assert_null(f.aggregator.last_ended);
    assert_int_equal(aggregator_process_end(&f.aggregator, image,
                                            &(struct aggregator_process_ending){.end_ms = 1}),
                     ERR_OK);
    assert_int_equal(image->record.left_ms, 0); // the last one: the heap ends with its blocks
    assert_ptr_equal(f.aggregator.last_ended, image);
    assert_true((image->record.flags & REC_PROCESS_MAIN) != 0);
    assert_true((f.aggregator.processes.items[0]->record.flags & REC_PROCESS_EXECED) != 0);
    close_fixture(&f);
}

// A forked child has its parent's image, but may have said something of it itself.
static void a_child_inherits_only_what_it_has_not_said(void **state)
{
    (void)state;
    for (unsigned known = 0; known < 8; known++) {
        struct fixture f = {0};
        open_fixture(&f, 1);
        f.process->record.executable = 11;
        f.process->record.command_line = 12;
        f.process->record.allocator = 13;
        const struct rec_process record = {.pid = 2,
                                           .parent = f.process->index,
                                           .parent_pid = 1,
                                           .flags = REC_PROCESS_FORKED,
                                           .executable = known & 1U ? 21 : 0,
                                           .command_line = known & 2U ? 22 : 0,
                                           .allocator = known & 4U ? 23 : 0,
                                           .exit_status = -1};
        struct aggregator_process *child = NULL;
        assert_int_equal(aggregator_process_begin(&f.aggregator, &record, &child), ERR_OK);
        assert_int_equal(child->record.executable, known & 1U ? 21 : 11);
        assert_int_equal(child->record.command_line, known & 2U ? 22 : 12);
        assert_int_equal(child->record.allocator, known & 4U ? 23 : 13);
        close_fixture(&f);
    }
}

static void a_free_of_nothing_is_counted_once(void **state)
{
    (void)state;
    struct fixture f = {0};
    open_fixture(&f, 2);
    for (uint64_t tick = 1; tick < 100; tick++) {
        struct event e = {.kind = EVENT_FREE, .address = address_of(tick % 3), .tick = tick};
        feed(&f, &e);
    }
    assert_int_equal(aggregator_process_end(
                         &f.aggregator, f.process,
                         &(struct aggregator_process_ending){.end_ms = f.aggregator.totals.now_ms}),
                     ERR_OK);
    assert_int_equal(f.aggregator.unknown_frees, 99);
    assert_int_equal(f.aggregator.totals.sums.frees, 0);
    close_fixture(&f);
}

// Frees of blocks that were never seen: whose they are depends on the process and on what was not
// recorded before.
static void a_free_of_an_unknown_block_has_a_reason(void **state)
{
    (void)state;
    static const struct {
        bool was_stopped;
        bool is_forked;
        uint64_t unsampled;
        uint64_t unknown;
        uint64_t unrecorded;
        uint64_t of_unsampled;
    } cases[] = {
        {false, false, 0, 3, 0, 0}, {false, true, 0, 3, 0, 0}, {true, false, 0, 0, 3, 0},
        {true, true, 0, 3, 0, 0},   {true, false, 9, 0, 0, 3}, {false, true, 9, 0, 0, 3},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f = {0};
        open_fixture(&f, 1);
        const struct aggregator_stop stop = {0};
        assert_int_equal(cases[i].was_stopped ? aggregator_stop_vec_push(&f.aggregator.stops, stop)
                                              : ERR_OK,
                         ERR_OK);
        f.process->record.flags |= cases[i].is_forked ? REC_PROCESS_FORKED : 0;
        f.aggregator.sampling.unsampled_allocations = cases[i].unsampled;
        aggregator_count_unknown(&f.aggregator, f.process, 3);
        assert_int_equal(f.aggregator.unknown_frees, cases[i].unknown);
        assert_int_equal(f.aggregator.unrecorded_frees, cases[i].unrecorded);
        assert_int_equal(f.aggregator.sampling.unsampled_frees, cases[i].of_unsampled);
        close_fixture(&f);
    }
}

// A program may overwrite records so that one block stands for many, but count no unsampled one.
static void a_false_sampling_weight_marks_all_figures_as_estimates(void **state)
{
    (void)state;
    struct fixture f = {0};
    open_fixture(&f, 1);
    assert_int_equal(aggregator_book_row(&f.threads[0], 1, 0, 1), ERR_OK);
    for (uint64_t i = 0; i < 20; i++) {
        assert_int_equal(aggregator_tick(&f.aggregator, 1 + 10 * i), ERR_OK);
        const struct book_entry entry = {.row = 1,
                                         .weight = i == 10 ? 32 : 1,
                                         .size_count = 1,
                                         .size_buckets = {(uint8_t)rec_bucket_of(500)},
                                         .sizes = {book_cell_with(0, 500)}};
        assert_int_equal(aggregator_book_add(&f.aggregator, &f.threads[0], &entry), ERR_OK);
    }
    whole_snapshot_check(&f.aggregator);
    struct whole_snapshot whole;
    whole_snapshot_take(&f.aggregator, &whole);
    assert_int_equal(whole.recording.totals.interval_bytes, 0);
    assert_int_not_equal(whole.recording.totals.unsampled_allocations, 0);
    whole_snapshot_release(&whole);
    close_fixture(&f);
}

// Of blocks that were left out few or none may have been chosen: then their variance says nothing.
static void what_no_chosen_block_stands_for_is_in_the_error(void **state)
{
    static const struct {
        uint64_t unsampled;
        uint64_t represented;
        uint64_t error;
    } cases[] = {{0, 0, 0},          {5000, 0, 5000},    {5000, 5000, 0},
                 {5000, 6000, 1000}, {5000, 4000, 1000}, {50000, 0, 12288}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f = {0};
        open_fixture(&f, 1);
        allocate_at(&f, 0, 1000);
        f.aggregator.sampling = (struct aggregator_sampling){
            .unsampled_allocations = cases[i].unsampled / 100,
            .unsampled_bytes = cases[i].unsampled,
            .represented_bytes = cases[i].represented,
            .lane_interval_bytes = 4096,
        };
        struct whole_snapshot whole;
        whole_snapshot_take(&f.aggregator, &whole);
        assert_int_equal(whole.recording.totals.peak_error_bytes, cases[i].error);
        assert_int_equal(whole.recording.totals.peak_at_least_bytes,
                         1000 - min_u64(cases[i].error, 1000));
        whole_snapshot_release(&whole);
        close_fixture(&f);
    }
}

// Scopes of a thread end with it; the last one ends the counting of events for them.
static void scopes_end_with_their_thread(void **state)
{
    (void)state;
    struct fixture f = {0};
    open_fixture(&f, 2);
    for (uint32_t lane = 0; lane < 2; lane++) {
        const uint64_t bytes = lane == 0 ? 100 : 200;
        assert_int_equal(aggregator_begin_scope(&f.aggregator, &f.threads[lane], 3), ERR_OK);
        allocate_at(&f, lane, bytes);
        assert_int_equal(aggregator_scope_peak(&f.aggregator, &f.threads[lane], 3), bytes);
    }
    for (uint32_t lane = 0; lane < 2; lane++) {
        assert_int_equal(f.aggregator.scopes.threads.len, 2 - lane);
        aggregator_thread_end(&f.aggregator, &f.threads[lane], 20);
    }
    assert_int_equal(f.aggregator.scopes.threads.len, 0);
    close_fixture(&f);
}

static void command_lines_are_quoted_for_a_shell(void **state)
{
    (void)state;
    static const struct {
        const char *arguments;
        size_t len;
        const char *want;
    } cases[] = {
        {"ls\0-l", 6, "ls -l"},
        {"a b\0c", 6, "'a b' c"},
        {"it's\0", 6, "'it'\\''s' ''"},
        {"", 0, ""},
        {"\0", 1, "''"},
        {"x\ny\0", 4, "'x\ny'"},
        {"unterminated", 4, "unte"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct strbuf line = {0};
        command_line_quote(&line, (struct bytes){.data = (const uint8_t *)cases[i].arguments,
                                                 .len = cases[i].len});
        assert_string_equal(strbuf_text(&line), cases[i].want);
        strbuf_release(&line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_histories_agree_with_the_naive_replay),
        cmocka_unit_test(what_a_thread_calls_temporary_is_counted),
        cmocka_unit_test(a_process_that_ends_leaves_the_sum_but_not_its_rows),
        cmocka_unit_test(the_slices_and_the_run_include_the_end_of_each_process),
        cmocka_unit_test(a_thread_ends_with_its_process_at_the_latest),
        cmocka_unit_test(processes_that_did_not_join_are_a_loss),
        cmocka_unit_test(an_executed_program_is_the_next_epoch_of_its_process),
        cmocka_unit_test(a_child_inherits_only_what_it_has_not_said),
        cmocka_unit_test(a_free_of_nothing_is_counted_once),
        cmocka_unit_test(a_free_of_an_unknown_block_has_a_reason),
        cmocka_unit_test(a_false_sampling_weight_marks_all_figures_as_estimates),
        cmocka_unit_test(what_no_chosen_block_stands_for_is_in_the_error),
        cmocka_unit_test(scopes_end_with_their_thread),
        cmocka_unit_test(command_lines_are_quoted_for_a_shell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
