// SPDX-License-Identifier: MIT
// Tests that all written records come out, in order and whole, through a consumer that only uses
// layout.h and wire.h; and that a dead recorder does not delay the program for long.
#include "target/producer/lane_producer.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sys.h"
#include "base/test_support/random_numbers.h"
#include "target/producer/session_join.h"
#include "target/producer/waiting/recorder_liveness.h"

// One lane of a session that exists only in this process.
struct fixture {
    struct session_mapping mapping;
    struct lane_header *lane;
    struct lane_producer producer;
};

static struct fixture open_fixture(void)
{
    const size_t bytes = SESSION_LANES_OFFSET + 4 * (size_t)LANE_STRIDE;
    struct fixture f = {.mapping = {.lane_count = 4}};
    f.mapping.header = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(f.mapping.header, MAP_FAILED);
    f.mapping.header->recorder_pid = (uint32_t)getpid();
    assert_int_equal(session_claim_lane(&f.mapping, 0, 1, &f.lane), ERR_OK);
    lane_producer_init(&f.producer, f.mapping.header, f.lane);
    return f;
}

static void close_fixture(struct fixture *f)
{
    munmap(f->mapping.header, SESSION_LANES_OFFSET + 4 * (size_t)LANE_STRIDE);
}

// Consume at most `limit_bytes` from the lane; return how many were consumed.
static size_t take(struct lane_header *lane, uint64_t *into, size_t limit_bytes)
{
    const uint64_t write_pos = atomic_load(&lane->write_pos);
    const uint64_t read_pos = atomic_load(&lane->read_pos);
    const uint32_t ring_bytes = atomic_load(&lane->ring_bytes);
    assert_true(read_pos <= write_pos && write_pos - read_pos <= ring_bytes);
    size_t taken = 0;
    while (read_pos + taken < write_pos && taken < limit_bytes) {
        memcpy((uint8_t *)into + taken, lane_ring(lane) + (read_pos + taken) % ring_bytes, 8);
        taken += 8;
    }
    atomic_store(&lane->read_pos, read_pos + taken);
    const void *waiting = &lane->producer_waiting;
    if (atomic_exchange(&lane->producer_waiting, 0) != 0) {
        sys_futex_wake(waiting, 1);
    }
    return taken;
}

// Records of the property test: texts of random length whose bytes follow from a counter.
static void fill_text(uint8_t *text, size_t len, uint32_t serial)
{
    for (size_t i = 0; i < len; i++) {
        text[i] = (uint8_t)((size_t)serial * 31 + i * 7);
    }
}

struct stream {
    struct fixture *fixture;
    uint32_t records;
    uint64_t seed;
    bool slow; // the consumer takes little at a time
    atomic_bool done;
};

static size_t text_length(uint64_t *random)
{
    // Mostly small, sometimes the largest that one record holds.
    const uint64_t r = next_random(random);
    return r % 20 == 0 ? r / 20 % (WIRE_TEXT_BYTES_MAX + 1) : r / 20 % 40;
}

static void *produce(void *argument)
{
    struct stream *s = argument;
    struct lane_producer *p = &s->fixture->producer;
    uint64_t random = s->seed;
    uint8_t text[WIRE_TEXT_BYTES_MAX];
    for (uint32_t i = 0; i < s->records; i++) {
        const size_t len = text_length(&random);
        fill_text(text, len, i);
        lane_producer_send_text(p, WIRE_TEXT_LIBC, (struct bytes){.data = text, .len = len}, false);
        if (next_random(&random) % 3 != 0) {
            lane_producer_publish(p);
        }
    }
    lane_producer_publish(p);
    atomic_store(&s->done, true);
    return NULL;
}

// Decode whole records from `words`; return how many words they have.
static size_t check_records(const uint64_t *words, size_t count, uint64_t *random, uint32_t *serial)
{
    size_t at = 0;
    while (at < count) {
        const uint64_t word = words[at];
        if ((word & 0xff) == WIRE_PAD) {
            assert_in_range(word >> 8, 1, WIRE_RECORD_BYTES_MAX / 8);
            if (at + (word >> 8) > count) {
                break;
            }
            at += word >> 8;
            continue;
        }
        assert_int_equal(word & 0xff, WIRE_TEXT);
        const size_t len = word >> 24 & 0xffff;
        if (at + 1 + (len + 7) / 8 > count) {
            break;
        }
        assert_int_equal(len, text_length(random));
        uint8_t text[WIRE_TEXT_BYTES_MAX];
        fill_text(text, len, (*serial)++);
        assert_memory_equal(words + at + 1, text, len);
        (void)next_random(random);
        at += 1 + (len + 7) / 8;
    }
    return at;
}

static void run_stream(uint64_t seed, bool slow)
{
    struct fixture f = open_fixture();
    struct stream s = {.fixture = &f, .records = 20000, .seed = seed, .slow = slow};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, produce, &s), 0);
    static uint64_t pending[2 * LANE_RING_BYTES_MAX / 8];
    size_t pending_words = 0;
    uint64_t random = seed;
    uint64_t pace = seed ^ 1;
    uint32_t serial = 0;
    bool last = false;
    while (!last) {
        last = atomic_load(&s.done);
        atomic_fetch_add(&f.mapping.header->clock_ms, 1); // alive
        const size_t limit = slow ? 8 * (1 + next_random(&pace) % 200) : LANE_RING_BYTES_MAX;
        size_t taken;
        do {
            taken = take(f.lane, pending + pending_words, limit);
            pending_words += taken / 8;
            const size_t used = check_records(pending, pending_words, &random, &serial);
            memmove(pending, pending + used, (pending_words - used) * 8);
            pending_words -= used;
        } while (last && taken > 0);
    }
    pthread_join(thread, NULL);
    assert_int_equal(serial, s.records);
    assert_int_equal(pending_words, 0);
    close_fixture(&f);
}

static void random_records_arrive_whole_and_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        run_stream(seed, seed % 2 == 0);
    }
}

static void a_tick_that_was_forgotten_is_written_again_and_no_other(void **state)
{
    (void)state;
    struct fixture f = open_fixture();
    struct lane_producer *p = &f.producer;
    atomic_store(&f.mapping.header->clock_ms, 7);
    for (uint64_t round = 0; round < 3; round++) {
        assert_true(lane_producer_tick(p));
        assert_int_equal(p->pos, 8);
        lane_producer_rewind(p);
        assert_int_equal(p->pos, 0);
    }
    assert_true(lane_producer_tick(p));
    lane_producer_publish(p);
    *lane_producer_reserve(p, 1) = 0;
    lane_producer_advance(p, 1);
    lane_producer_rewind(p);
    assert_true(lane_producer_tick(p)); // the same moment, already recorded
    assert_int_equal(p->pos, 8);
    close_fixture(&f);
}

static void every_kind_of_record_has_its_layout(void **state)
{
    (void)state;
    struct fixture f = open_fixture();
    atomic_store(&f.mapping.header->clock_ms, 0x123456789a);
    struct lane_producer *p = &f.producer;
    assert_true(lane_producer_tick(p));
    assert_true(lane_producer_tick(p)); // the same moment: no record
    uint64_t *frames = lane_producer_begin_stack(p, 0xabcdef, WIRE_STACK_HAS_SLOT, 0x55, 2);
    frames[0] = 0x111;
    frames[1] = 0x222;
    lane_producer_advance(p, lane_stack_words(2));
    const uint8_t id[] = {1, 2, 3};
    assert_int_equal(
        lane_producer_send_module(
            p, &(struct lane_module){.slot = 0x0f0e,
                                     .flags = WIRE_MODULE_RESET,
                                     .bias = 0x1000,
                                     .start = 0x2000,
                                     .end = 0x3000,
                                     .build_id = {.data = id, .len = sizeof(id)},
                                     .path = {.data = (const uint8_t *)"/lib/x.so", .len = 9}}),
        ERR_OK);
    assert_int_equal(atomic_load(&f.lane->write_pos), 0); // nothing before it is published
    lane_producer_publish(p);
    const uint64_t want[] = {
        0x123456789a02,     0xabcdef010208, 0x55,   0x111,  0x222,
        0x10009030f0e09,    0x1000,         0x2000, 0x3000, 0x030201,
        0x732e782f62696c2f, 0x6f,
    };
    uint64_t got[64];
    const size_t taken = take(f.lane, got, sizeof(got));
    assert_int_equal(taken, sizeof(want));
    assert_memory_equal(got, want, sizeof(want));
    close_fixture(&f);
}

static uint64_t *one_word(struct lane_producer *p)
{
    uint64_t *word = lane_producer_reserve(p, 1);
    if (word != NULL) {
        *word = wire_word(WIRE_TICK, 1);
        lane_producer_advance(p, 1);
        lane_producer_publish(p);
    }
    return word;
}

static void the_recorder_is_woken_once_per_half_ring(void **state)
{
    (void)state;
    struct fixture f = open_fixture();
    const size_t half_words = LANE_RING_BYTES_MIN / 2 / 8;
    for (size_t i = 0; i < half_words; i++) {
        assert_non_null(one_word(&f.producer));
    }
    assert_int_equal(atomic_load(&f.mapping.header->recorder_wake), 0);
    for (size_t i = 0; i < half_words; i++) {
        assert_non_null(one_word(&f.producer));
    }
    assert_int_equal(atomic_load(&f.mapping.header->recorder_wake), 1);
    close_fixture(&f);
}

static void a_full_ring_doubles_up_to_its_bound_before_the_thread_waits(void **state)
{
    (void)state;
    struct fixture f = open_fixture();
    static uint64_t sink[LANE_RING_BYTES_MAX / 8];
    for (size_t i = 0; i < LANE_RING_BYTES_MAX / 8; i++) {
        assert_non_null(lane_producer_reserve(&f.producer, 1));
        *lane_producer_place(&f.producer) = i;
        lane_producer_advance(&f.producer, 1);
        lane_producer_publish(&f.producer);
    }
    assert_int_equal(atomic_load(&f.lane->ring_bytes), LANE_RING_BYTES_MAX);
    assert_int_equal(atomic_load(&f.mapping.header->counters[NOTE_producer_waits]), 0);
    assert_int_equal(take(f.lane, sink, sizeof(sink)), LANE_RING_BYTES_MAX);
    for (size_t i = 0; i < ARRAY_LEN(sink); i++) {
        assert_int_equal(sink[i], i);
    }
    close_fixture(&f);
}

// In an odd lap the unread bytes have other places in a larger ring: the ring waits for an even
// one.
static void a_ring_doubles_only_where_its_bytes_keep_their_places(void **state)
{
    (void)state;
    struct fixture f = open_fixture();
    static uint64_t sink[LANE_RING_BYTES_MAX / 8];
    const size_t lap = LANE_RING_BYTES_MIN / 8;
    uint64_t written = 0;
    uint64_t read = 0;
    size_t sizes = 1;
    uint32_t before = LANE_RING_BYTES_MIN;
    for (size_t backlog = lap / 4; backlog <= 16 * lap; backlog += lap / 4 + 3) {
        for (size_t turn = 0; turn < 5 * lap; turn++, written++) {
            assert_non_null(lane_producer_reserve(&f.producer, 1));
            *lane_producer_place(&f.producer) = written;
            lane_producer_advance(&f.producer, 1);
            lane_producer_publish(&f.producer);
            while (written + 1 - read > backlog) {
                assert_int_equal(take(f.lane, sink, 8), 8);
                assert_int_equal(sink[0], read++);
            }
            const uint32_t now = atomic_load(&f.lane->ring_bytes);
            sizes += now != before;
            before = now;
        }
    }
    assert_true(sizes >= 4);
    assert_int_equal(atomic_load(&f.mapping.header->counters[NOTE_producer_waits]), 0);
    close_fixture(&f);
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

// Fill a ring without a reader. Returns after how many milliseconds the producer gave up.
static uint64_t fill_unread(struct fixture *f)
{
    uint64_t *word;
    size_t written = 0;
    do {
        word = one_word(&f->producer);
        written++;
    } while (word != NULL && written <= LANE_RING_BYTES_MAX / 8);
    assert_null(word);
    assert_int_equal(written, LANE_RING_BYTES_MAX / 8 + 1);
    return now_ms();
}

enum death {
    REAPED,
    ZOMBIE,
    SILENT,
    ENDED
};

// Return how long a producer waits for a recorder that is dead in this way. The wait must end, not
// too early, and the lost events must be counted. The exact moments depend on the machine:
// recorder_liveness_test.c tests them.
static uint64_t wait_for_the_dead(enum death death, uint64_t lost)
{
    struct fixture f = open_fixture();
    const pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    siginfo_t info;
    waitid(P_PID, (id_t)child, &info, WEXITED | (death == ZOMBIE ? WNOWAIT : 0));
    if (death == REAPED || death == ZOMBIE) {
        f.mapping.header->recorder_pid = (uint32_t)child;
    } else if (death == ENDED) {
        atomic_store(&f.mapping.header->state, SESSION_ENDED);
    }
    const uint64_t began = now_ms();
    const uint64_t took = fill_unread(&f) - began;
    assert_int_equal(atomic_load(&f.mapping.header->state),
                     death == ENDED ? SESSION_ENDED : SESSION_ABANDONED);
    assert_int_equal(atomic_load(&f.mapping.header->counters[NOTE_lane_timeout]), lost);
    if (death == ZOMBIE) {
        waitpid(child, NULL, 0);
    }
    close_fixture(&f);
    return took;
}

// While sampling, the ring determines the sampling level: 0 while it is less than half full, and
// one level more with each step beyond. Frees take some steps without raising the level.
static void the_level_rises_in_steps_from_half_full(void **state)
{
    (void)state;
    const uint64_t half = LANE_RING_BYTES_MAX / 2;
    const uint64_t step = LANE_RING_BYTES_MAX / LANE_LEVEL_STEPS;
    const struct {
        uint64_t used_bytes;
        uint32_t level;
        uint64_t next_bytes; // where the next level begins, or the ring ends
        uint64_t free_bytes;
    } cases[] = {
        {half, 1, half + step + 8, 8},
        {half + 5 * step, 1, half + 6 * step, 5 * step},
        {half + 5 * step + 8, 4, half + 6 * step, 2 * step},
        {half + 63 * step, LANE_LEVEL_MAX, LANE_RING_BYTES_MAX, 63 * step},
        {half + (LANE_FREE_STEPS + 2) * step, 3, half + (LANE_FREE_STEPS + 3) * step, 63 * step},
        {half - 8, 0, half, 5 * step},
        {0, 0, half, 0},
        {half - 8, 0, half, 0},
        {half, 1, half + step, 0},
        {half + step - 8, 1, half + step, 0},
        {half + step, 2, half + 2 * step, 0},
        {half + (LANE_LEVEL_MAX - 1) * step - 8, LANE_LEVEL_MAX - 1,
         half + (LANE_LEVEL_MAX - 1) * step, 0},
        {half + (LANE_LEVEL_MAX - 1) * step, LANE_LEVEL_MAX, LANE_RING_BYTES_MAX, 0},
        {LANE_RING_BYTES_MAX - 8, LANE_LEVEL_MAX, LANE_RING_BYTES_MAX, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f = open_fixture();
        struct lane_producer *p = &f.producer;
        f.mapping.header->flags |= SESSION_OVERFLOW_SAMPLE;
        lane_producer_init(p, f.mapping.header, f.lane);
        p->pos = cases[i].used_bytes;
        p->free_bytes = cases[i].free_bytes;
        assert_non_null(lane_producer_make_room(p, 8));
        assert_int_equal(p->level, cases[i].level);
        assert_int_equal(p->free_bytes, cases[i].level != 0 ? cases[i].free_bytes : 0);
        assert_int_equal(p->soft_limit, cases[i].next_bytes);
        // Later the recorder has read up to here: the level falls, and never rises.
        p->level = LANE_LEVEL_MAX;
        lane_producer_relax(p);
        assert_int_equal(p->level, cases[i].level);
        p->level = 0;
        lane_producer_relax(p);
        assert_int_equal(p->level, 0);
        close_fixture(&f);
    }
}

static void a_dead_recorder_ends_the_session(void **state)
{
    (void)state;
    static const struct {
        enum death death;
        uint64_t least_ms;
        uint64_t lost;
    } cases[] = {
        {REAPED, LANE_SUSPECT_MS, 1},
        {ZOMBIE, LANE_SUSPECT_MS, 1},
        {SILENT, LANE_PATIENCE_MS, 1},
        {ENDED, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_true(wait_for_the_dead(cases[i].death, cases[i].lost) >= cases[i].least_ms);
    }
}

// Each nap of a producer wakes the recorder once. This many naps take longer than a producer waits
// for a recorder of its own pid namespace.
#define LATE_WAKES (2 * LANE_SUSPECT_MS / LANE_WAIT_MS)

static void *read_late(void *argument)
{
    struct fixture *f = argument;
    struct session_header *session = f->mapping.header;
    while (atomic_load(&session->recorder_wake) < LATE_WAKES) {
        const struct timespec nap = {.tv_nsec = 1000000};
        nanosleep(&nap, NULL);
    }
    static uint64_t sink[LANE_RING_BYTES_MAX / 8];
    take(f->lane, sink, sizeof(sink));
    return NULL;
}

// Return whether the word behind a full ring was written when the recorder had read late.
static bool is_waited_for(void)
{
    const pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    waitpid(child, NULL, 0);
    struct fixture f = open_fixture();
    struct session_header *session = f.mapping.header;
    session->recorder_pid = (uint32_t)child;
    session->recorder_namespace = 1;
    session_process(session, f.lane->process_index)->pid_namespace = 2;
    for (size_t i = 0; i < LANE_RING_BYTES_MAX / 8; i++) {
        assert_non_null(one_word(&f.producer));
    }
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_late, &f), 0);
    const bool is_written = one_word(&f.producer) != NULL;
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&session->counters[NOTE_producer_waits]), 1);
    assert_int_equal(atomic_load(&session->counters[NOTE_lane_timeout]), is_written ? 0 : 1);
    close_fixture(&f);
    return is_written;
}

// In another pid namespace the recorder's pid proves nothing, and its clock may be stopped for
// longer. Here no process has that pid. On a busy machine the thread that reads may have no
// processor for LANE_PATIENCE_MS; then it is tried again.
static void a_slow_recorder_with_an_unknown_pid_is_waited_for(void **state)
{
    (void)state;
    int attempt = 1;
    while (!is_waited_for()) {
        assert_true(attempt++ < 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_record_has_its_layout),
        cmocka_unit_test(a_tick_that_was_forgotten_is_written_again_and_no_other),
        cmocka_unit_test(random_records_arrive_whole_and_in_order),
        cmocka_unit_test(the_recorder_is_woken_once_per_half_ring),
        cmocka_unit_test(a_full_ring_doubles_up_to_its_bound_before_the_thread_waits),
        cmocka_unit_test(a_ring_doubles_only_where_its_bytes_keep_their_places),
        cmocka_unit_test(the_level_rises_in_steps_from_half_full),
        cmocka_unit_test(a_dead_recorder_ends_the_session),
        cmocka_unit_test(a_slow_recorder_with_an_unknown_pid_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
