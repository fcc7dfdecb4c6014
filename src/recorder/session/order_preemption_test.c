// SPDX-License-Identifier: MIT
// The peak of several threads that lose their processors at any moment, and of a recorder that
// does, against a replay that knows when each block was in the allocator.
//
// A thread's events have two halves, and between them the others may do anything:
//
//   malloc    the block exists                            | the hook records it
//   free      the hook records it                         | the block is gone
//   realloc   the hook takes its word | the block moves   | the hook records it
//   a pass    the recorder looks for threads that ended   | it reads the lanes
//
// A thread that has lost its processor comes back after some ticks. Threads end, and others begin.
// An event counts at some moment between its beginning and its end, so the replay has two peaks: in
// one allocations count at once and frees late, in the other it is the other way round. The
// recorded peak must be between them, but for the stated bound. All counts must be exact.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/minmax.h"
#include "base/test_support/by_night.h"
#include "base/test_support/random_numbers.h"
#include "recorder/session/test_lanes.h"

enum {
    ADDRESSES = 120,
    ROUNDS = 12,     // of a run; each has a higher peak than the one before
    STEPS = 500,     // of a round
    RUNS = 40,       // of each program
    TICK_STEPS = 60, // on average, as the next four
    HALF_PASS_STEPS = 40,
    TURN_STEPS = 8,
    STALL_EVENTS = 40,
    STALL_STEPS = 400,     // at most
    TOP_STEPS = 12,        // of a peak
    OLD_INDEX = ADDRESSES, // of the addresses of other blocks
    TOP_INDEX,
    STEP_INDEX,
    BOUND_MIN = 48 * 64, // bytes
};
#define OLD_BYTES  ((uint64_t)1 << 20) // live throughout
#define STEP_BYTES 10000u
#define BLOCK_ROOM ((uint64_t)4096)
#define LARGE_ROOM ((uint64_t)64 << 20)

// What the threads do, in parts of their free choices.
struct program {
    const char *name;
    uint32_t lanes;
    uint32_t size_max;
    uint32_t frees_of_16;
    uint32_t moves_of_16;
    uint32_t foreign_of_16; // of the blocks taken: whichever thread has made them
    uint32_t ends_of_256;
};

static const struct program programs[] = {
    {"two that grow", 2, 400, 1, 0, 0, 0},
    {"large blocks", 2, 2000, 3, 1, 0, 0},
    {"blocks that move", 2, 3000, 2, 8, 0, 0},
    {"each other's blocks", 3, 1000, 3, 3, 8, 0},
    {"threads that end", 2, 1000, 3, 1, 0, 30},
    {"each other's blocks, and threads that end", 4, 300, 4, 2, 8, 30},
    {"many small blocks", 4, 64, 5, 2, 6, 8},
};

enum half {
    IDLE,
    ALLOCATED,
    FREEING,
    MOVING,
    MOVED,
};

struct worker {
    enum half half;
    uint32_t at; // address of the block
    uint32_t to; // that it moves to
    uint64_t size_bytes;
    uint64_t old_bytes; // of the block that it moves
    struct freed_note note;
    uint32_t stalled_until;
};

enum state {
    VACANT,
    LIVE,
    TAKEN, // a worker is at it
};

struct world {
    const struct program *program;
    struct test_lanes f;
    uint64_t random;
    struct worker workers[TEST_LANES_MAX];
    struct {
        enum state state;
        uint64_t size_bytes;
        uint32_t lane;
    } blocks[ADDRESSES];
    uint64_t most_bytes;  // live, if events that are under way count for much
    uint64_t least_bytes; // and for little
    uint64_t most_peak_bytes;
    uint64_t least_peak_bytes;
    uint64_t bound_bytes; // of the peak, as the recorder saw it
    uint64_t error_bytes; // of the bounds, in all
    uint64_t allocations;
    uint64_t frees;
    uint32_t begun_count; // threads
    bool gives_back;      // threads that rest give the memory of their lanes back
    bool is_passing;      // the recorder has read the moment up to which it will count events
};

static uint32_t below(struct world *w, uint32_t limit)
{
    return (uint32_t)(next_random(&w->random) % limit);
}

// Blocks do not overlap.
static uint64_t address_of(uint32_t index)
{
    return test_address(0) + index * (index < ADDRESSES ? BLOCK_ROOM : LARGE_ROOM);
}

// A block begins to be there.
static void come(struct world *w, uint64_t size_bytes)
{
    w->most_bytes += size_bytes;
    w->most_peak_bytes = max_u64(w->most_peak_bytes, w->most_bytes);
}

// It is there: the hook has recorded it.
static void be_there(struct world *w, uint64_t size_bytes)
{
    w->least_bytes += size_bytes;
    w->least_peak_bytes = max_u64(w->least_peak_bytes, w->least_bytes);
    w->allocations++;
}

// A block begins to go.
static void go(struct world *w, uint64_t size_bytes)
{
    w->least_bytes -= size_bytes;
}

static void be_gone(struct world *w, uint64_t size_bytes)
{
    w->most_bytes -= size_bytes;
    w->frees++;
}

// Return an address, or ADDRESSES if this try finds none of that state.
static uint32_t draw(struct world *w, enum state state, uint32_t lane)
{
    const uint32_t at = below(w, ADDRESSES);
    const bool is_any = state == VACANT || below(w, 16) < w->program->foreign_of_16;
    return w->blocks[at].state == state && (is_any || w->blocks[at].lane == lane) ? at : ADDRESSES;
}

static void give(struct world *w, uint32_t at, uint32_t lane, uint64_t size_bytes)
{
    w->blocks[at].state = LIVE;
    w->blocks[at].lane = lane;
    w->blocks[at].size_bytes = size_bytes;
}

static void begin_thread(struct world *w, uint32_t lane)
{
    w->workers[lane] = (struct worker){.half = IDLE};
    test_lanes_open_lane(&w->f, 0, lane);
}

static void end_thread(struct world *w, uint32_t lane)
{
    struct lane_producer *p = w->f.lanes + lane;
    assert_true(lane_flush(p));
    book_end(p);
    lane_producer_close(p);
}

static void begin_free(struct world *w, uint32_t lane)
{
    struct worker *worker = w->workers + lane;
    struct lane_producer *p = w->f.lanes + lane;
    worker->at = draw(w, LIVE, lane);
    if (worker->at == ADDRESSES) {
        return;
    }
    w->blocks[worker->at].state = TAKEN;
    go(w, w->blocks[worker->at].size_bytes);
    assert_true(lane_enter(p) && lane_free(p, address_of(worker->at)));
    worker->half = FREEING;
}

static void begin_move(struct world *w, uint32_t lane)
{
    struct worker *worker = w->workers + lane;
    const struct lane_producer *p = w->f.lanes + lane;
    worker->at = draw(w, LIVE, lane);
    if (worker->at == ADDRESSES) {
        return;
    }
    w->blocks[worker->at].state = TAKEN;
    go(w, w->blocks[worker->at].size_bytes);
    worker->half = MOVING;
    worker->note = test_begin_move(p, address_of(worker->at));
}

static void begin_allocation(struct world *w, uint32_t lane)
{
    struct worker *worker = w->workers + lane;
    worker->at = draw(w, VACANT, lane);
    if (worker->at == ADDRESSES) {
        return;
    }
    w->blocks[worker->at].state = TAKEN;
    worker->size_bytes = 1 + below(w, w->program->size_max);
    come(w, worker->size_bytes);
    worker->half = ALLOCATED;
}

static void begin_event(struct world *w, uint32_t lane)
{
    const struct program *program = w->program;
    const uint32_t what = below(w, 16);
    if (below(w, 256) < program->ends_of_256) {
        end_thread(w, lane);
        begin_thread(w, lane);
    } else if (what < program->frees_of_16) {
        begin_free(w, lane);
    } else if (what < program->frees_of_16 + program->moves_of_16) {
        begin_move(w, lane);
    } else {
        begin_allocation(w, lane);
    }
}

// The block moves, perhaps to where it is.
static void move(struct world *w, struct worker *worker, uint32_t lane)
{
    const uint32_t to = draw(w, VACANT, lane);
    worker->to = to < ADDRESSES ? to : worker->at;
    worker->old_bytes = w->blocks[worker->at].size_bytes;
    worker->size_bytes = 1 + below(w, w->program->size_max);
    come(w, worker->size_bytes);
    w->blocks[worker->at].state = VACANT;
    w->blocks[worker->to].state = TAKEN;
}

static void step(struct world *w, uint32_t lane)
{
    struct worker *worker = w->workers + lane;
    struct lane_producer *p = w->f.lanes + lane;
    const enum half half = worker->half;
    worker->half = IDLE;
    switch (half) {
    case IDLE:
        begin_event(w, lane);
        break;
    case ALLOCATED:
        assert_true(lane_enter(p) &&
                    lane_allocate(p, address_of(worker->at), worker->size_bytes, lane));
        give(w, worker->at, lane, worker->size_bytes);
        be_there(w, worker->size_bytes);
        break;
    case FREEING:
        be_gone(w, w->blocks[worker->at].size_bytes);
        w->blocks[worker->at].state = VACANT;
        break;
    case MOVING:
        move(w, worker, lane);
        worker->half = MOVED;
        break;
    case MOVED:
        assert_true(lane_enter(p) &&
                    lane_reallocate(p, address_of(worker->at), address_of(worker->to),
                                    worker->size_bytes, lane, &worker->note));
        give(w, worker->to, lane, worker->size_bytes);
        be_gone(w, worker->old_bytes);
        be_there(w, worker->size_bytes);
        break;
    }
}

// Run one half of the recorder's pass.
static void half_a_pass(struct world *w)
{
    struct test_lanes *f = &w->f;
    if (!w->is_passing) {
        drain_find_dead(&f->on.drain);
    } else {
        test_lanes_read(f, false);
    }
    w->is_passing = !w->is_passing;
}

// Allocate a block in one step.
static void allocate(struct world *w, uint32_t lane, uint32_t index, uint64_t size_bytes)
{
    struct lane_producer *p = w->f.lanes + lane;
    come(w, size_bytes);
    assert_true(lane_enter(p) && lane_allocate(p, address_of(index), size_bytes, lane));
    be_there(w, size_bytes);
}

static void release(struct world *w, uint32_t lane, uint32_t index, uint64_t size_bytes)
{
    struct lane_producer *p = w->f.lanes + lane;
    go(w, size_bytes);
    assert_true(lane_enter(p) && lane_free(p, address_of(index)));
    be_gone(w, size_bytes);
}

// Make a new peak in a thread, while the others stop wherever they are. Return the size of the
// block of the peak.
static uint64_t rise(struct world *w, uint32_t lane, uint32_t now)
{
    for (uint32_t i = 0; i < w->begun_count; i++) {
        w->workers[i].stalled_until =
            i != lane ? now + below(w, below(w, 2) == 0 ? STALL_STEPS : TOP_STEPS) : 0;
    }
    if (!w->is_passing && below(w, 2) == 0) {
        half_a_pass(w);
    }
    allocate(w, lane, STEP_INDEX, STEP_BYTES);
    const uint64_t size_bytes =
        max_u64(w->bound_bytes, w->most_peak_bytes) + STEP_BYTES - w->least_bytes;
    allocate(w, lane, TOP_INDEX, size_bytes);
    return size_bytes;
}

static void fall(struct world *w, uint32_t lane, uint64_t size_bytes)
{
    release(w, lane, TOP_INDEX, size_bytes);
    release(w, lane, STEP_INDEX, STEP_BYTES);
}

// Run steps of the threads and the recorder. Return the thread of the last one.
static uint32_t run_steps(struct world *w, uint32_t from, uint32_t to, uint32_t lane)
{
    for (uint32_t i = from; i < to; i++) {
        if (below(w, TICK_STEPS) == 0) {
            test_lanes_advance(&w->f, 1);
        }
        if (below(w, w->is_passing ? 2 * HALF_PASS_STEPS : HALF_PASS_STEPS) == 0) {
            half_a_pass(w);
        }
        struct worker *worker = w->workers + lane;
        if (i >= worker->stalled_until && below(w, TURN_STEPS) != 0) {
            step(w, lane);
            worker->stalled_until = below(w, STALL_EVENTS) == 0 ? i + below(w, STALL_STEPS) : 0;
        } else {
            lane = below(w, w->begun_count);
        }
    }
    return lane;
}

static void finish_event(struct world *w, uint32_t lane)
{
    while (w->workers[lane].half != IDLE) {
        step(w, lane);
    }
}

static void check(struct world *w)
{
    struct aggregator *aggregator = &w->f.on.aggregator;
    const struct heap_totals *totals = &aggregator->totals;
    const uint64_t error_bytes = aggregator->book_error_bytes;
    assert_int_equal(row_table_count(&aggregator->totals.rows), ERR_OK);
    assert_int_equal(w->f.on.drain.corrupt_lanes, 0);
    assert_int_equal(aggregator->unknown_frees, 0);
    assert_int_equal(totals->sums.allocations, w->allocations);
    assert_int_equal(totals->sums.frees, w->frees);
    assert_int_equal(w->most_bytes, w->least_bytes);
    assert_int_equal(totals->sums.live_bytes, w->least_bytes);
    assert_true(totals->peak_bytes + error_bytes >= w->least_peak_bytes);
    assert_true(totals->peak_bytes <= w->most_peak_bytes + error_bytes);
    assert_true(error_bytes <= totals->peak_bytes / 50 + BOUND_MIN);
    w->bound_bytes = totals->peak_bytes + error_bytes;
    w->error_bytes += error_bytes;
}

// Let all threads rest, so that their books have no page any more.
static void rest(struct world *w)
{
    for (uint32_t i = 0; i < 8; i++) {
        test_lanes_advance(&w->f, 20);
        half_a_pass(w);
        half_a_pass(w);
    }
    const struct drain *drain = &w->f.on.drain;
    for (uint32_t i = 0; i < drain->active_count; i++) {
        struct lane_header *lane = session_lane(w->f.on.session.memory, drain->active[i]);
        unsigned char pages[LANE_BOOK_BYTES / PAGE_GRAIN];
        assert_int_equal(mincore(lane_book_tables(lane), LANE_BOOK_BYTES, pages), 0);
        assert_null(memchr(pages, 1, LANE_BOOK_BYTES / (size_t)sysconf(_SC_PAGESIZE)));
    }
}

// Let threads run and make a peak at a random moment. Then let all events end, and the recorder
// read them.
static void run_round(struct world *w)
{
    const uint32_t top = below(w, STEPS);
    const uint32_t lane = run_steps(w, 0, top, 0);
    finish_event(w, lane);
    const uint64_t size_bytes = rise(w, lane, top);
    (void)run_steps(w, top, top + TOP_STEPS, lane);
    finish_event(w, lane);
    fall(w, lane, size_bytes);
    (void)run_steps(w, top + TOP_STEPS, STEPS, lane);
    for (uint32_t i = 0; i < w->begun_count; i++) {
        finish_event(w, i);
        w->workers[i].stalled_until = 0;
    }
    for (uint32_t i = 0; i < 9; i++) { // threads that rested are read after 16 ms
        test_lanes_advance(&w->f, 2);
        half_a_pass(w);
        half_a_pass(w);
    }
    check(w);
    if (w->gives_back) {
        rest(w);
    }
}

// Return the mean of the bounds.
static uint64_t run(const struct program *program, uint64_t seed)
{
    static struct world w;
    w = (struct world){
        .program = program, .random = seed * 0x9e3779b97f4a7c15 + 1, .gives_back = seed % 8 == 5};
    test_lanes_open(&w.f, 1);
    w.f.on.aggregator.budget.max_bytes = w.gives_back ? 1 << 20 : 0; // one lane is too many
    w.begun_count = 1;
    allocate(&w, 0, OLD_INDEX, OLD_BYTES);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        if (w.begun_count < program->lanes) {
            begin_thread(&w, w.begun_count++);
        }
        run_round(&w);
    }
    test_lanes_close(&w.f);
    return w.error_bytes / ROUNDS;
}

static void the_true_peak_is_within_the_bound_whoever_loses_a_processor(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
        uint64_t error_bytes = 0;
        uint32_t runs = 0;
        for (uint64_t seed = 1; seed <= RUNS; seed += step_by_day(4)) {
            error_bytes += run(programs + i, seed);
            runs++;
        }
        print_message("%s: within %d bytes\n", programs[i].name, (int)(error_bytes / runs));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_true_peak_is_within_the_bound_whoever_loses_a_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
