// SPDX-License-Identifier: MIT
// Numbers of rows are given back once nothing uses them, and not before: threads go round through
// many more stacks than they have slots and free each other's blocks, and each row has what its
// stack did.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>

#include "recorder/ingest/test_drain.h"
#include "target/producer/entry/lane_entry.h"
#include "target/producer/words/row_numbers.h"

enum {
    THREADS = 3,
    SLOTS = 8,
    STACKS = 3000, // of each thread
    BLOCKS = 600,  // places of blocks
// Sanitizers are slow: with more events, full rings are read later than their threads wait.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    EVENTS = 10000,
#else
    EVENTS = 120000,
#endif
    PLACE_BYTES = 8192,
    FRAMES_AT = 0x1000,
    NO_STACK = STACKS,
    // Of a thread, in its ring and in what a pass has read: a definition takes 64 bytes at least.
    UNDER_WAY = 2 * LANE_RING_BYTES_MAX / 64,
};

struct place {
    pthread_mutex_t lock;
    uint64_t size_bytes; // 0: free
    uint32_t owner;
    uint32_t stack;
};

struct world {
    struct fixture f;
    uint32_t process;
    struct process_words *words;
    struct place places[BLOCKS];
    struct test_sums truth[THREADS][STACKS];
    _Atomic uint32_t running;
    _Atomic uint32_t definitions;
};

struct player {
    struct world *world;
    struct lane_producer producer;
    uint32_t rows[SLOTS];
    uint32_t stacks[SLOTS]; // in each slot
    uint32_t number;
    uint64_t random;
};

static void open_world(struct world *w)
{
    *w = (struct world){.f = {.clock_ms = 1}};
    test_session_open(&w->f.on, SESSION_FOLLOW_CHILDREN);
    w->process = join(&w->f, (uint32_t)getpid(), 0);
    w->words = test_session_open_words(&w->f.on);
    assert_non_null(w->words);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        assert_int_equal(pthread_mutex_init(&w->places[i].lock, NULL), 0);
    }
}

static void open_player(struct world *w, struct player *p, uint32_t number)
{
    struct lane_header *lane;
    *p = (struct player){.world = w, .number = number, .random = number + 1};
    assert_int_equal(session_claim_lane(&w->f.on.mapping, w->process, (uint32_t)getpid(), &lane),
                     ERR_OK);
    lane_producer_init(&p->producer, w->f.on.mapping.header, lane);
    book_begin(&p->producer, w->words, p->rows);
    assert_true(lane_enter(&p->producer));
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        p->stacks[slot] = NO_STACK;
    }
}

static uint64_t draw(struct player *p)
{
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    return p->random >> 20;
}

// As the stack dictionary does.
static uint32_t slot_of(struct player *p, uint32_t stack)
{
    const uint32_t slot = stack % SLOTS;
    if (p->stacks[slot] != stack) {
        assert_true(lane_enter(&p->producer));
        uint64_t *frames = lane_producer_begin_stack(&p->producer, slot, WIRE_STACK_HAS_SLOT, 0, 1);
        assert_non_null(frames);
        frames[0] = FRAMES_AT + p->number * STACKS + stack;
        lane_producer_advance(&p->producer, lane_stack_words(1));
        assert_true(book_leave_row(&p->producer, slot));
        lane_producer_publish(&p->producer);
        p->stacks[slot] = stack;
        atomic_fetch_add(&p->world->definitions, 1);
    }
    return slot;
}

static uint64_t address_of(uint32_t at)
{
    return 0x7f0000000000 + (uint64_t)at * 2 * PLACE_BYTES;
}

static void make(struct player *p, uint32_t at, uint32_t stack, uint64_t size_bytes)
{
    struct place *place = p->world->places + at;
    struct test_sums *truth = &p->world->truth[p->number][stack];
    const uint32_t slot = slot_of(p, stack);
    *place = (struct place){place->lock, size_bytes, p->number, stack};
    assert_true(lane_allocate(&p->producer, address_of(at), size_bytes, slot));
    test_sums_allocate(truth, size_bytes);
}

static void drop(struct player *p, uint32_t at)
{
    struct place *place = p->world->places + at;
    struct test_sums *truth = &p->world->truth[place->owner][place->stack];
    assert_true(lane_free(&p->producer, address_of(at)));
    test_sums_free(truth, place->size_bytes);
    place->size_bytes = 0;
}

static void flush(struct player *p)
{
    assert_true(lane_flush(&p->producer));
}

static void close_player(struct player *p)
{
    flush(p);
    book_end(&p->producer);
    lane_producer_close(&p->producer);
}

static void *play(void *argument)
{
    struct player *p = argument;
    struct world *w = p->world;
    for (uint32_t i = 0; i < EVENTS; i++) {
        const uint32_t at = (uint32_t)(draw(p) % BLOCKS);
        (void)pthread_mutex_lock(&w->places[at].lock);
        atomic_store(lane_guard(p->producer.lane), 1); // as a hook does
        if (w->places[at].size_bytes == 0) {
            make(p, at, (uint32_t)(draw(p) % STACKS),
                 draw(p) % 16 == 0 ? 1 + draw(p) % PLACE_BYTES : 1 + draw(p) % 300);
        } else {
            drop(p, at);
        }
        atomic_store(lane_guard(p->producer.lane), 0);
        (void)pthread_mutex_unlock(&w->places[at].lock);
    }
    close_player(p);
    atomic_fetch_sub(&w->running, 1);
    return NULL;
}

static struct aggregator_process *process_of(struct world *w)
{
    return w->f.on.aggregator.processes.items[0];
}

static void assert_rows(struct world *w)
{
    const struct aggregator *a = &w->f.on.aggregator;
    uint64_t allocations = 0;
    assert_int_equal(process_of(w)->debts.len, 0);
    for (uint32_t r = 0; r < a->totals.rows.rows.len; r++) {
        const struct rec_row *row = a->totals.rows.rows.items + r;
        const uint64_t of =
            a->stacks.frames.items[a->stacks.nodes.items[row->node].frame].offset - FRAMES_AT;
        const struct test_sums *truth = &w->truth[of / STACKS][of % STACKS];
        assert_row_has(row, truth);
        allocations += row->allocations;
    }
    assert_int_equal(allocations, a->totals.sums.allocations);
    assert_int_equal(a->unknown_frees, 0);
    assert_int_equal(w->f.on.drain.corrupt_lanes, 0);
}

static void end(struct world *w)
{
    bool was_busy;
    assert_int_equal(drain_pass(&w->f.on.drain, w->f.clock_ms, true, &was_busy), ERR_OK);
    assert_rows(w);
    close_fixture(&w->f);
    free(w);
}

static struct world *begin(void)
{
    struct world *w = malloc(sizeof(*w));
    assert_non_null(w);
    open_world(w);
    return w;
}

static void numbers_follow_what_is_in_use(void **state)
{
    (void)state;
    static struct player players[THREADS];
    pthread_t threads[THREADS];
    struct world *w = begin();
    const uint64_t deadline_s = now_s() + DEADLINE_S;
    static struct test_clock clock;
    begin_test_clock(&clock, &w->f);
    w->running = THREADS;
    for (uint32_t i = 0; i < THREADS; i++) {
        open_player(w, &players[i], i);
        assert_int_equal(pthread_create(&threads[i], NULL, play, &players[i]), 0);
    }
    while (atomic_load(&w->running) > 0) {
        assert_true(now_s() < deadline_s);
        pass_beside_clock(&w->f);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    end_test_clock(&clock);
    const uint32_t most = THREADS * (SLOTS + UNDER_WAY + BOOK_COUNTERS) + BLOCKS;
    print_message("%u definitions, %zu numbers\n", w->definitions, process_of(w)->book_nodes.len);
    assert_true(EVENTS < 120000 || w->definitions > 2 * most);
    assert_true(process_of(w)->book_nodes.len <= most);
    end(w);
}

// Return the number of the row of a stack's first block since it has its slot.
static uint32_t number_of_next(struct player *p, uint32_t at, uint32_t stack)
{
    make(p, at, stack, 100);
    return p->rows[stack % SLOTS] & WORD_ROW_MAX;
}

static void a_number_is_free_when_its_last_free_is_read(void **state)
{
    (void)state;
    static struct player one;
    static struct player two;
    struct world *w = begin();
    open_player(w, &one, 0);
    open_player(w, &two, 1);
    assert_int_equal(number_of_next(&one, 0, 0), 1);
    assert_int_equal(number_of_next(&one, 1, SLOTS), 2); // stack 0 has lost its slot
    pass(&w->f);
    assert_int_equal(number_of_next(&one, 2, 1), 3); // a block of 1 lives
    atomic_store(lane_guard(two.producer.lane), 1);  // or the pass would take its book
    drop(&two, 0);
    pass(&w->f);
    assert_int_equal(number_of_next(&one, 3, 2), 4); // its free is not sent
    atomic_store(lane_guard(two.producer.lane), 0);
    flush(&two);
    pass(&w->f);
    assert_int_equal(number_of_next(&one, 4, 3), 1);
    assert_int_equal(number_of_next(&one, 5, 4), 5);
    drop(&one, 1); // 2 has its slot, so it is not free
    flush(&one);
    pass(&w->f);
    assert_int_equal(number_of_next(&two, 6, 5), 6);
    close_player(&one); // but now; 5 and others have blocks
    pass(&w->f);
    pass(&w->f);
    assert_int_equal(number_of_next(&two, 7, 6), 2);
    assert_int_equal(number_of_next(&two, 8, 7), 7);
    end(w);
}

// A stack that is defined for something else than a block leaves the row before it, but its number
// is in use until there is a block: who frees the latest block ends a temporary one.
static void a_number_stays_until_the_next_block(void **state)
{
    (void)state;
    static struct player one;
    static struct player two;
    struct world *w = begin();
    open_player(w, &one, 0);
    open_player(w, &two, 1);
    assert_int_equal(number_of_next(&one, 0, 0), 1);
    (void)slot_of(&one, SLOTS); // as for a mapping
    drop(&two, 0);
    flush(&two);
    pass(&w->f);
    assert_int_equal(number_of_next(&two, 0, 0), 2);
    drop(&one, 0); // not a block of its own, and so not temporary
    flush(&one);
    pass(&w->f);
    assert_int_equal(w->f.on.aggregator.totals.sums.temporary, 0);
    end(w);
}

static void numbers_of_another_level_are_left(void **state)
{
    (void)state;
    static struct player one;
    struct world *w = begin();
    open_player(w, &one, 0);
    one.producer.row_level = 3;
    assert_int_equal(number_of_next(&one, 0, 0), 1);
    drop(&one, 0);
    one.producer.row_level = 0;
    assert_int_equal(number_of_next(&one, 1, 0), WORD_RANGE_ROWS);
    pass(&w->f);
    assert_int_equal(number_of_next(&one, 2, 1), WORD_RANGE_ROWS + 1);
    one.producer.row_level = 3;
    assert_int_equal(row_numbers_take(w->words, 3), 1);
    assert_int_equal(row_numbers_take(w->words, 3), 2);
    close_fixture(&w->f);
    free(w);
}

// What a program writes into the list takes no number that cannot be.
static void a_scribbled_list_gives_no_wrong_number(void **state)
{
    (void)state;
    static struct player one;
    struct world *w = begin();
    open_player(w, &one, 0);
    assert_int_equal(number_of_next(&one, 0, 0), 1);
    assert_int_equal(number_of_next(&one, 1, SLOTS), 2);
    drop(&one, 0);
    flush(&one);
    pass(&w->f);
    struct free_rows *list = process_words_free_rows(w->words);
    assert_non_null(list);
    free_rows_give(list, 0);
    free_rows_give(list, WORD_ROW_MAX);
    free_rows_give(list, 9 * WORD_RANGE_ROWS);
    assert_int_equal(row_numbers_take(w->words, 0), 1);
    assert_int_equal(row_numbers_take(w->words, 0), 3);
    free_rows_give(list, 2); // it has blocks: the recorder distrusts who takes it
    assert_int_equal(number_of_next(&one, 2, 1), 2);
    flush(&one);
    pass(&w->f);
    assert_int_equal(w->f.on.drain.corrupt_lanes, 1);
    assert_true(process_of(w)->book_has_gaps);
    close_fixture(&w->f);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_is_free_when_its_last_free_is_read),
        cmocka_unit_test(a_number_stays_until_the_next_block),
        cmocka_unit_test(numbers_of_another_level_are_left),
        cmocka_unit_test(a_scribbled_list_gives_no_wrong_number),
        cmocka_unit_test(numbers_follow_what_is_in_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
