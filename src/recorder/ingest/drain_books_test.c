// SPDX-License-Identifier: MIT
// Threads that keep books, free each other's blocks and are read at any moment: the rows have what
// each event said, the peak is within its bound, and the list of blocks is that of the live ones.
// Some threads stop as if they were killed: between two events, with unsent counts.
#include "recorder/ingest/drain_books.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/bucket.h"
#include "base/clock.h"
#include "recorder/ingest/test_drain.h"
#include "session/recorder_wake.h"
#include "session/stats_query_values.h"
#include "target/producer/entry/lane_entry.h"

enum {
    THREADS_MAX = 8,
    STACKS = 24,
    BLOCKS = 600, // places of blocks
    EVENTS = 40000,
    PLACE_BYTES = 8192,
};

struct place {
    pthread_mutex_t lock;
    uint64_t size_bytes; // 0: free
    uint32_t owner;
    uint32_t slot;
};

struct world {
    struct fixture f;
    uint32_t process;
    struct process_words *words;
    uint32_t thread_count;
    struct place places[BLOCKS];
    struct test_sums truth[THREADS_MAX][STACKS];
    _Atomic int64_t live_bytes;
    _Atomic int64_t peak_bytes;
    _Atomic uint32_t running;
    uint64_t start_ns;
};

struct player {
    struct world *world;
    struct lane_producer producer;
    uint32_t rows[1024];
    uint32_t number;
    uint64_t random;
};

static uint64_t draw(struct player *p)
{
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    return p->random >> 20;
}

static void change_live(struct world *w, int64_t delta)
{
    const int64_t now = atomic_fetch_add(&w->live_bytes, delta) + delta;
    int64_t peak = atomic_load(&w->peak_bytes);
    while (now > peak && !atomic_compare_exchange_weak(&w->peak_bytes, &peak, now)) {
    }
}

static void make(struct player *p, struct place *place, uint64_t address)
{
    struct world *w = p->world;
    place->size_bytes = draw(p) % 16 == 0 ? 1 + draw(p) % PLACE_BYTES : 1 + draw(p) % 300;
    place->owner = p->number;
    place->slot = (uint32_t)(draw(p) % STACKS);
    struct test_sums *truth = &w->truth[place->owner][place->slot];
    assert_true(lane_allocate(&p->producer, address, place->size_bytes, place->slot));
    test_sums_allocate(truth, place->size_bytes);
    change_live(w, (int64_t)place->size_bytes);
}

static void drop(struct player *p, struct place *place, uint64_t address)
{
    struct test_sums *truth = &p->world->truth[place->owner][place->slot];
    assert_true(lane_free(&p->producer, address));
    test_sums_free(truth, place->size_bytes);
    change_live(p->world, -(int64_t)place->size_bytes);
    place->size_bytes = 0;
}

static void open_book(struct player *p)
{
    struct world *w = p->world;
    struct lane_header *lane;
    // Threads of other ids: the drain looks whether they live.
    assert_int_equal(session_claim_lane(&w->f.on.mapping, w->process, (uint32_t)getpid(), &lane),
                     ERR_OK);
    lane_producer_init(&p->producer, w->f.on.mapping.header, lane);
    book_begin(&p->producer, w->words, p->rows);
    assert_true(lane_enter(&p->producer));
    for (uint32_t slot = 0; slot < STACKS; slot++) {
        uint64_t *frames = lane_producer_begin_stack(&p->producer, slot, WIRE_STACK_HAS_SLOT, 0, 1);
        assert_non_null(frames);
        frames[0] = 0x1000 + p->number * STACKS + slot;
        lane_producer_advance(&p->producer, lane_stack_words(1));
        assert_true(book_define_row(&p->producer, slot));
    }
    lane_producer_publish(&p->producer);
}

static void *play(void *argument)
{
    struct player *p = argument;
    struct world *w = p->world;
    for (uint32_t i = 0; i < EVENTS; i++) {
        const uint32_t at = (uint32_t)(draw(p) % BLOCKS);
        struct place *place = w->places + at;
        const uint64_t address = 0x7f0000000000 + (uint64_t)at * 2 * PLACE_BYTES;
        (void)pthread_mutex_lock(&place->lock);
        atomic_store(lane_guard(p->producer.lane), 1); // as a hook does
        if (place->size_bytes == 0) {
            make(p, place, address);
        } else {
            drop(p, place, address);
        }
        atomic_store(lane_guard(p->producer.lane), 0);
        (void)pthread_mutex_unlock(&place->lock);
    }
    if (p->number % 2 == 0) { // the others are killed
        assert_true(lane_flush(&p->producer));
        book_end(&p->producer);
        lane_producer_close(&p->producer);
    }
    atomic_fetch_sub(&w->running, 1);
    return NULL;
}

static void open_world(struct world *w, uint32_t threads)
{
    w->thread_count = threads;
    w->running = threads;
    w->f = (struct fixture){.clock_ms = 1};
    test_session_open(&w->f.on, SESSION_FOLLOW_CHILDREN);
    w->process = join(&w->f, (uint32_t)getpid(), 0);
    w->words = test_session_open_words(&w->f.on);
    assert_non_null(w->words);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        assert_int_equal(pthread_mutex_init(&w->places[i].lock, NULL), 0);
    }
}

// A pass in real time: the recorder takes the book of a thread that has been idle for long.
static void pass_in_time(struct world *w)
{
    struct timespec now;
    bool was_busy;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    const uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    w->start_ns = w->start_ns != 0 ? w->start_ns : now_ns;
    w->f.clock_ms = 1 + (now_ns - w->start_ns) / 1000000;
    atomic_store(&w->f.on.session.header->clock_ms, w->f.clock_ms);
    drain_find_dead(&w->f.on.drain);
    drain_note_time(&w->f.on.drain, w->f.clock_ms, now_ns);
    assert_int_equal(drain_pass(&w->f.on.drain, w->f.clock_ms, false, &was_busy), ERR_OK);
}

// Let the threads play while the drain reads.
static void run(struct world *w, struct player *players, uint64_t seed)
{
    pthread_t threads[THREADS_MAX];
    const uint64_t deadline_s = now_s() + DEADLINE_S;
    for (uint32_t i = 0; i < w->thread_count; i++) {
        players[i] = (struct player){.world = w, .number = i, .random = seed * 977 + i};
        open_book(&players[i]);
    }
    for (uint32_t i = 0; i < w->thread_count; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, play, &players[i]), 0);
    }
    while (atomic_load(&w->running) > 0) {
        assert_true(now_s() < deadline_s);
        pass_in_time(w);
    }
    for (uint32_t i = 0; i < w->thread_count; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    pass_in_time(w);
}

static void assert_rows(const struct world *w)
{
    const struct aggregator *a = &w->f.on.aggregator;
    const struct row_table *table = &a->totals.rows;
    uint64_t allocations = 0;
    uint64_t expected = 0;
    assert_int_equal(a->processes.items[0]->debts.len, 0);
    for (uint32_t i = 0; i < w->thread_count; i++) {
        for (uint32_t slot = 0; slot < STACKS; slot++) {
            expected += w->truth[i][slot].allocations;
        }
    }
    for (uint32_t r = 0; r < table->rows.len; r++) {
        const struct rec_row *row = table->rows.items + r;
        const uint64_t of =
            a->stacks.frames.items[a->stacks.nodes.items[row->node].frame].offset - 0x1000;
        const struct test_sums *truth = &w->truth[of / STACKS][of % STACKS];
        assert_row_has(row, truth);
        allocations += row->allocations;
    }
    assert_int_equal(allocations, expected);
    assert_int_equal(a->totals.sums.live_bytes, w->live_bytes);
    assert_int_equal(a->unknown_frees, 0);
}

static void assert_blocks(struct world *w)
{
    CLEANUP(listed_block_vec_release) struct listed_block_vec listed = {0};
    const struct aggregator_process *process = w->f.on.aggregator.processes.items[0];
    assert_int_equal(drain_books_list_blocks(&w->f.on.drain, process, NULL, NULL, &listed), ERR_OK);
    size_t at = 0;
    for (uint32_t i = 0; i < BLOCKS; i++) {
        if (w->places[i].size_bytes != 0) {
            assert_true(at < listed.len);
            assert_int_equal(listed.items[at].address,
                             0x7f0000000000 + (uint64_t)i * 2 * PLACE_BYTES);
            assert_int_equal(listed.items[at].size_bytes, w->places[i].size_bytes);
            at++;
        }
    }
    assert_int_equal(at, listed.len);
}

static void assert_peak(struct world *w)
{
    struct aggregator *a = &w->f.on.aggregator;
    assert_int_equal(aggregator_complete_rows(a), ERR_OK);
    // One thread's peak is exact; of several, each may have a block in hand.
    const uint64_t in_hand = w->thread_count > 1 ? w->thread_count * (uint64_t)PLACE_BYTES : 0;
    const int64_t error = (int64_t)(a->book_error_bytes + in_hand);
    const int64_t peak = (int64_t)a->totals.peak_bytes;
    assert_true(peak - error <= w->peak_bytes && w->peak_bytes <= peak + error);
    uint64_t bytes = 0;
    for (uint32_t r = 0; r < a->totals.rows.rows.len; r++) {
        bytes += a->totals.rows.rows.items[r].peak_bytes;
    }
    assert_int_equal(bytes, peak);
}

static void rows_are_what_threads_counted(void **state)
{
    (void)state;
    static const uint32_t counts[] = {1, 2, 4, THREADS_MAX};
    for (uint32_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct world *w = calloc(1, sizeof(*w));
        struct player *players = calloc(THREADS_MAX, sizeof(*players));
        bool was_busy;
        assert_non_null(w);
        assert_non_null(players);
        open_world(w, counts[i]);
        run(w, players, i + 1);
        assert_int_equal(drain_pass(&w->f.on.drain, w->f.clock_ms, true, &was_busy), ERR_OK);
        assert_rows(w);
        assert_blocks(w);
        assert_peak(w);
        close_fixture(&w->f);
        free(players);
        free(w);
    }
}

// Allocate and send it.
static void allocate_once(struct player *p, uint32_t *blocks)
{
    assert_true(lane_enter(&p->producer));
    assert_true(lane_allocate(&p->producer, 0x7f0000000000 + 64 * (uint64_t)++ * blocks, 48, 0));
    assert_true(lane_flush(&p->producer));
}

// Let the first thread work for that many milliseconds. Return how many passes looked at each lane.
static uint32_t work_for(struct world *w, struct player *busy, uint32_t ms, uint32_t *blocks)
{
    uint32_t full = 0;
    for (uint32_t i = 0; i < ms; i++) {
        allocate_once(busy, blocks);
        pass(&w->f);
        full += w->f.on.drain.is_full;
    }
    return full;
}

// What a thread without events costs is a look now and then. What it does after its rest is read
// then, and at once if it waits for the recorder, ends, or nothing else happens.
static void lanes_of_idle_threads_rest(void **state)
{
    enum {
        IDLE = 5,
        REST_MS = 101,
        LOOKS_MS = 16,
    };
    (void)state;
    struct world *w = calloc(1, sizeof(*w));
    struct player *players = calloc(1 + IDLE, sizeof(*players));
    assert_non_null(w);
    assert_non_null(players);
    open_world(w, 1);
    const struct drain *drain = &w->f.on.drain;
    const uint64_t *counted = &w->f.on.aggregator.totals.sums.allocations;
    uint32_t blocks = 0;
    for (uint32_t i = 0; i <= IDLE; i++) {
        players[i] = (struct player){.world = w, .number = i};
        open_book(&players[i]);
    }
    (void)work_for(w, players, REST_MS + LOOKS_MS, &blocks);
    assert_int_equal(drain->active_count, 1 + IDLE);
    assert_int_equal(drain->awake_count, 1);
    assert_in_range(work_for(w, players, 10 * LOOKS_MS, &blocks), 9, 11);
    assert_int_equal(*counted, blocks);
    // Read with the next full pass, and awake from then on.
    while (!drain->is_full) {
        (void)work_for(w, players, 1, &blocks);
    }
    allocate_once(&players[3], &blocks);
    (void)work_for(w, players, LOOKS_MS - 1, &blocks);
    assert_int_equal(*counted, blocks - 1);
    (void)work_for(w, players, 1, &blocks);
    assert_int_equal(*counted, blocks);
    assert_int_equal(drain->awake_count, 2);
    // At once.
    allocate_once(&players[4], &blocks);
    session_wake_recorder(w->f.on.session.header);
    (void)work_for(w, players, 1, &blocks);
    assert_int_equal(*counted, blocks);
    (void)work_for(w, players, 1, &blocks);
    assert_false(drain->is_full);
    book_end(&players[2].producer);
    lane_producer_close(&players[2].producer);
    (void)work_for(w, players, 2, &blocks);
    assert_int_equal(drain->active_count, IDLE);
    // Nothing happens: the recorder may rest.
    for (uint32_t i = 0; i < REST_MS; i++) {
        pass(&w->f);
    }
    assert_true(drain->is_full);
    assert_int_equal(drain->awake_count, 0);
    allocate_once(&players[5], &blocks);
    pass(&w->f);
    assert_int_equal(*counted, blocks);
    close_fixture(&w->f);
    free(players);
    free(w);
}

// Of each table of words; and one that lets the thread keep much of the sum.
static const uint64_t g_sizes[] = {100, 1000, 8000, 16 << 20};

static void allocate_at(struct player *p, uint64_t address, uint32_t kind)
{
    struct test_sums *truth = &p->world->truth[0][kind];
    assert_true(lane_allocate(&p->producer, address, g_sizes[kind], kind));
    truth->allocations++;
    truth->allocated_bytes += g_sizes[kind];
    truth->frees++; // in the end all are freed, or known to have been
    truth->freed_bytes += g_sizes[kind];
}

// A block that was freed past the hooks ends with the next one at its address, whatever the tables
// of the two are. The free after that is of the new one.
static void a_missed_free_is_made_up_for(void **state)
{
    (void)state;
    struct world *w = calloc(1, sizeof(*w));
    struct player *p = calloc(1, sizeof(*p));
    bool was_busy;
    assert_non_null(w);
    assert_non_null(p);
    open_world(w, 1);
    *p = (struct player){.world = w};
    open_book(p);
    const uint64_t large = 0x7f0000000000 + PLACE_BYTES;
    allocate_at(p, large, 3);
    for (uint32_t i = 0; i < 9; i++) {
        const uint64_t address = 0x7f0000000000 + (uint64_t)i * 4 * PLACE_BYTES;
        for (uint32_t kind = 0; kind < 3; kind++) { // all tables have had words there
            allocate_at(p, address, kind);
            assert_true(lane_free(&p->producer, address));
        }
        allocate_at(p, address, i % 3);
        allocate_at(p, address, i / 3);
        assert_true(lane_free(&p->producer, address));
    }
    assert_true(lane_free(&p->producer, large));
    assert_true(lane_flush(&p->producer));
    assert_int_equal(drain_pass(&w->f.on.drain, w->f.clock_ms, true, &was_busy), ERR_OK);
    assert_rows(w);
    assert_blocks(w);
    close_fixture(&w->f);
    free(p);
    free(w);
}

// The sizes of a row are counted by bucket, also of more buckets than a counter has cells.
static void sizes_are_counted_by_bucket(void **state)
{
    (void)state;
    struct world *w = calloc(1, sizeof(*w));
    struct player *p = calloc(1, sizeof(*p));
    struct bucket_sums {
        uint64_t blocks;
        uint64_t bytes;
    } truth[BUCKET_COUNT] = {0};
    CLEANUP(rec_bucket_vec_release) struct rec_bucket_vec found = {0};
    bool was_busy;
    assert_non_null(w);
    assert_non_null(p);
    open_world(w, 1);
    *p = (struct player){.world = w, .random = 5};
    open_book(p);
    for (uint32_t i = 0; i < 3000; i++) {
        const uint64_t address = 0x7f0000000000 + (uint64_t)(i % BLOCKS) * 2 * PLACE_BYTES;
        const uint64_t size_bytes = 16 + draw(p) % (i < 1000 ? 256 : 4096);
        assert_true(lane_allocate(&p->producer, address, size_bytes, 0));
        assert_true(lane_free(&p->producer, address));
        truth[bucket_of(size_bytes)].blocks++;
        truth[bucket_of(size_bytes)].bytes += size_bytes;
    }
    assert_true(lane_flush(&p->producer));
    assert_int_equal(drain_pass(&w->f.on.drain, w->f.clock_ms, true, &was_busy), ERR_OK);
    const struct row_table *table = &w->f.on.aggregator.totals.rows;
    assert_int_equal(table->rows.len, 1);
    assert_int_equal(bucket_set_collect(table->extras.items[0].histograms + ROW_ALLOCATED, 0, 3000,
                                        table->rows.items[0].allocated_bytes, &found),
                     ERR_OK);
    uint64_t blocks = 0;
    for (size_t i = 0; i < found.len; i++) {
        assert_int_equal(found.items[i].count, truth[found.items[i].bucket].blocks);
        assert_int_equal(found.items[i].bytes, truth[found.items[i].bucket].bytes);
        blocks += found.items[i].count;
    }
    assert_int_equal(blocks, 3000);
    close_fixture(&w->f);
    free(p);
    free(w);
}

// Read all that is left. That is the peak of the sum, and of the rows.
static void assert_last_pass_has_peak(struct world *w, uint64_t peak_bytes)
{
    struct aggregator *a = &w->f.on.aggregator;
    bool was_busy;
    assert_int_equal(drain_pass(&w->f.on.drain, w->f.clock_ms, true, &was_busy), ERR_OK);
    assert_int_equal(a->book_peak_bytes, peak_bytes);
    assert_int_equal(aggregator_complete_rows(a), ERR_OK);
    assert_int_equal(a->totals.peak_bytes, peak_bytes);
}

// A thread frees a large block after another one's peak, whose number it cannot see yet: that one
// lost its processor before it stored the copy. The block was live at the peak.
static void a_large_free_comes_after_the_peak_that_it_lowers(void **state)
{
    (void)state;
    const uint64_t address = 0x7f0000000000;
    struct world *w = calloc(1, sizeof(*w));
    struct player *players = calloc(2, sizeof(*players));
    assert_non_null(w);
    assert_non_null(players);
    open_world(w, 2);
    struct shared_sum *sum = &w->f.on.session.header->sum;
    for (uint32_t i = 0; i < 2; i++) {
        players[i] = (struct player){.world = w, .number = i};
        open_book(&players[i]);
    }
    assert_true(lane_allocate(&players[0].producer, address, 9000, 0));
    const uint32_t number = shared_sum_number(sum);
    assert_true(lane_allocate(&players[1].producer, address + (uint64_t)2 * PLACE_BYTES, 1000, 0));
    assert_int_equal(shared_sum_number(sum), number + 1);
    atomic_store(&sum->number, number);
    assert_true(lane_free(&players[0].producer, address));
    assert_true(lane_flush(&players[0].producer) && lane_flush(&players[1].producer));
    assert_last_pass_has_peak(w, 10000);
    close_fixture(&w->f);
    free(players);
    free(w);
}

// A recording can end while its program runs. The only thread knows its peak before the sum does.
static void the_last_pass_has_the_peak_of_a_thread_that_lives(void **state)
{
    (void)state;
    const uint64_t address = 0x7f0000000000;
    struct world *w = calloc(1, sizeof(*w));
    struct player *p = calloc(1, sizeof(*p));
    assert_non_null(w);
    assert_non_null(p);
    open_world(w, 1);
    *p = (struct player){.world = w};
    open_book(p);
    for (uint32_t i = 0; i < 7; i++) {
        assert_true(lane_allocate(&p->producer, address + (uint64_t)i * PLACE_BYTES, 1000, 0));
    }
    assert_true(lane_free(&p->producer, address));
    struct shared_sum *sum = &w->f.on.session.header->sum;
    assert_int_equal(shared_sum_read(sum).peak_bytes, 6000);
    assert_last_pass_has_peak(w, 7000);
    assert_int_equal(w->f.on.aggregator.book_error_bytes, 0);
    assert_int_equal(w->f.on.aggregator.totals.sums.live_bytes, 6000);
    close_fixture(&w->f);
    free(p);
    free(w);
}

static void ask(struct player *p)
{
    const uint64_t word = wire_word(WIRE_QUERY, 1 | (uint64_t)STATS_QUERY_PROCESS << 32);
    assert_true(lane_flush(&p->producer) && lane_send(&p->producer, &word, 1));
}

// A thread found the clock at rest, and read a time that the clock has not reached as another one
// asks. What it counted precedes the question, so the answer has it.
static void an_answer_has_what_was_counted_at_a_later_time(void **state)
{
    (void)state;
    enum {
        CLOCK_MS = 5,
        LATER_MS = 20,
    };
    struct world *w = calloc(1, sizeof(*w));
    struct player *players = calloc(2, sizeof(*players));
    bool was_busy;
    assert_non_null(w);
    assert_non_null(players);
    open_world(w, 2);
    struct session_clock clock = {.start_ns = clock_monotonic_ns() - LATER_MS * NS_PER_MS,
                                  .lock = PTHREAD_MUTEX_INITIALIZER};
    w->f.on.drain.clock = &clock;
    atomic_store(&w->f.on.session.header->clock_ms, LATER_MS);
    for (uint32_t i = 0; i < 2; i++) {
        players[i] = (struct player){.world = w, .number = i};
        open_book(&players[i]);
        allocate_at(&players[i], 0x7f0000000000 + (uint64_t)i * PLACE_BYTES, 0);
        atomic_store(&w->f.on.session.header->clock_ms, CLOCK_MS); // of the one who asks
    }
    ask(&players[1]);
    const struct lane_answer *answer = &players[1].producer.lane->answer;
    const uint64_t deadline_s = now_s() + DEADLINE_S;
    for (uint64_t ms = CLOCK_MS; atomic_load(&answer->answered) == 0; ms++) {
        assert_true(now_s() < deadline_s);
        atomic_store(&w->f.on.session.header->clock_ms, ms);
        drain_note_time(&w->f.on.drain, ms, (ms + 1) * 2 * NS_PER_MS);
        assert_int_equal(drain_pass(&w->f.on.drain, ms, false, &was_busy), ERR_OK);
    }
    assert_int_equal(answer->values[ANSWER_ALLOCATIONS], 2);
    close_fixture(&w->f);
    free(players);
    free(w);
}

// Two processes. One holds HELD bytes until it is killed.
struct pair {
    struct fixture f;
    uint32_t other; // slot of the one that goes on
    uint32_t held;
    pid_t other_pid;
    pid_t held_pid;
};

enum {
    HELD = 4000,
    BASE = 1000, // of the other process
};

static pid_t start_process(void)
{
    const pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); // of a failed test
        for (;;) {
            (void)pause();
        }
    }
    assert_true(pid > 0);
    return pid;
}

static void kill_process(pid_t pid)
{
    siginfo_t ended;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT), 0);
}

// A thread of the process adds so much to the sum.
static void change_sum(struct pair *pair, uint32_t slot, int64_t bytes)
{
    words_share_add(pair->f.on.session.words->shares + slot, bytes);
    shared_sum_change(&pair->f.on.session.header->sum, bytes);
}

static void begin_held(struct pair *pair)
{
    struct session_header *header = pair->f.on.mapping.header;
    pair->held = join(&pair->f, (uint32_t)pair->held_pid, 0);
    session_process(header, pair->held)->pid_namespace = pair->f.on.session.pid_namespace;
    change_sum(pair, pair->held, HELD);
}

static void open_pair(struct pair *pair)
{
    *pair = (struct pair){.f = {.clock_ms = 1}};
    test_session_open(&pair->f.on, SESSION_FOLLOW_CHILDREN);
    pair->other_pid = start_process(); // it maps the session, so its pid is ours
    pair->held_pid = start_process();
    pair->other = join(&pair->f, (uint32_t)pair->other_pid, 0);
    change_sum(pair, pair->other, BASE);
    pass(&pair->f);
}

// The other process sets a peak with what the killed one still has in the sum.
static void set_peak(struct pair *pair)
{
    change_sum(pair, pair->other, HELD);
    change_sum(pair, pair->other, -HELD);
}

static void close_pair(struct pair *pair, uint64_t ghost_bytes)
{
    pass(&pair->f);
    assert_int_equal(pair->f.on.aggregator.totals.peak_bytes, BASE + 2 * HELD);
    assert_int_equal(pair->f.on.aggregator.book_ghost_bytes, ghost_bytes);
    (void)kill(pair->other_pid, SIGKILL);
    assert_int_equal(waitpid(pair->other_pid, NULL, 0), pair->other_pid);
    assert_int_equal(waitpid(pair->held_pid, NULL, 0), pair->held_pid);
    close_fixture(&pair->f);
}

static void a_peak_of_living_processes_is_not_too_high(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair);
    begin_held(&pair);
    set_peak(&pair);
    pass(&pair.f);
    kill_process(pair.held_pid);
    close_pair(&pair, 0);
}

static void a_peak_after_the_latest_look_may_be_too_high(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair);
    begin_held(&pair);
    pass(&pair.f);
    kill_process(pair.held_pid);
    set_peak(&pair);
    close_pair(&pair, HELD);
}

// The pass began before the look in it, and the peak has the time of the pass.
static void a_peak_of_a_long_pass_may_be_too_high(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair);
    begin_held(&pair);
    pass(&pair.f);
    atomic_store(&pair.f.on.session.header->clock_ms, pair.f.clock_ms + 10);
    drain_find_dead(&pair.f.on.drain);
    kill_process(pair.held_pid);
    set_peak(&pair);
    pass_now(&pair.f);
    pair.f.clock_ms += 10;
    close_pair(&pair, HELD);
}

// Both are found dead in one pass, the one that set the peak first.
static void a_peak_of_a_dead_process_may_be_too_high(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair);
    begin_held(&pair);
    pass(&pair.f);
    kill_process(pair.held_pid);
    set_peak(&pair);
    change_sum(&pair, pair.other, -BASE);
    kill_process(pair.other_pid);
    close_pair(&pair, HELD);
}

// No look has found it alive.
static void a_process_that_is_dead_when_it_is_found_may_have_been(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair);
    begin_held(&pair);
    kill_process(pair.held_pid);
    set_peak(&pair);
    close_pair(&pair, HELD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peak_of_living_processes_is_not_too_high),
        cmocka_unit_test(a_peak_after_the_latest_look_may_be_too_high),
        cmocka_unit_test(a_peak_of_a_long_pass_may_be_too_high),
        cmocka_unit_test(a_peak_of_a_dead_process_may_be_too_high),
        cmocka_unit_test(a_process_that_is_dead_when_it_is_found_may_have_been),
        cmocka_unit_test(rows_are_what_threads_counted),
        cmocka_unit_test(lanes_of_idle_threads_rest),
        cmocka_unit_test(a_missed_free_is_made_up_for),
        cmocka_unit_test(sizes_are_counted_by_bucket),
        cmocka_unit_test(a_large_free_comes_after_the_peak_that_it_lowers),
        cmocka_unit_test(the_last_pass_has_the_peak_of_a_thread_that_lives),
        cmocka_unit_test(an_answer_has_what_was_counted_at_a_later_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
