// SPDX-License-Identifier: MIT
// session_clock: rests, what ends them, and that no wake-up is lost. The recorded threads are
// threads of the test.
#include "recorder/session/session_clock.h"

#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/test_support/open_files.h"
#include "session/recorder_wake.h"

#define DEADLINE_MS 60000
#define HAMMER_MS   700

struct fixture {
    struct session session;
    struct session_clock clock;
};

static struct fixture f;

static void set_up(uint32_t tick_ms)
{
    assert_int_equal(session_create(&(struct session_options){.max_frames = 8}, &f.session, NULL),
                     ERR_OK);
    assert_int_equal(session_clock_start(&f.clock, &f.session, -1, tick_ms, NULL), ERR_OK);
}

static void tear_down(void)
{
    session_clock_stop(&f.clock);
    session_release(&f.session);
}

static uint64_t word(void)
{
    return atomic_load(&f.session.header->clock_ms);
}

static void await_time(uint64_t now_ms)
{
    const uint64_t end_ms = clock_monotonic_ms() + DEADLINE_MS;
    while (session_clock_now(&f.clock) < now_ms) {
        assert_true(clock_monotonic_ms() < end_ms);
        (void)poll(NULL, 0, 1);
    }
}

// Rest after the latest one may have been ended.
static void rest(void)
{
    while (!session_clock_rest(&f.clock)) {
    }
}

static void await_wake(void)
{
    struct pollfd wake = {.fd = f.clock.wake_fd, .events = POLLIN};
    assert_int_equal(poll(&wake, 1, DEADLINE_MS), 1);
}

static void a_rest_stands_still_until_its_time_is_set(void **state)
{
    (void)state;
    set_up(1);
    await_time(5);
    rest();
    const uint64_t first = word();
    assert_true((first & SESSION_CLOCK_RESTS) != 0);
    assert_int_equal(first & ~SESSION_CLOCK_RESTS, session_clock_now(&f.clock));
    const uint64_t end_ms = clock_monotonic_ms() + 20;
    while (clock_monotonic_ms() < end_ms) {
        assert_int_equal(word(), first);
        (void)poll(NULL, 0, 1);
    }
    assert_true(session_clock_rest(&f.clock));
    assert_true(word() >= first + 19 && (word() & SESSION_CLOCK_RESTS) != 0);
    session_clock_go_on(&f.clock);
    assert_true((word() & SESSION_CLOCK_RESTS) == 0);
    await_time(session_clock_now(&f.clock) + 5);
    tear_down();
}

static void a_recorded_thread_gets_the_time_and_ends_the_rest(void **state)
{
    (void)state;
    set_up(1);
    await_time(5);
    for (int i = 0; i < 3; i++) {
        rest();
        const uint64_t began_ms = word() & ~SESSION_CLOCK_RESTS;
        const uint64_t end_ms = clock_monotonic_ms() + 10;
        while (clock_monotonic_ms() < end_ms) {
            (void)poll(NULL, 0, 1);
        }
        const uint64_t now_ms = session_now_ms(f.session.header);
        assert_true(now_ms >= began_ms + 9);
        await_wake();
        assert_true((word() & SESSION_CLOCK_RESTS) == 0);
        assert_true(session_clock_now(&f.clock) >= now_ms);
        assert_int_equal(session_now_ms(f.session.header), word());
        assert_false(session_clock_rest(&f.clock)); // the news
    }
    // A system clock that differs, and none.
    rest();
    f.session.header->clock_start_ns += UINT64_C(1000000) * (SESSION_REST_MS_MAX + DEADLINE_MS);
    const uint64_t clock = word() | SESSION_CLOCK_RESTS;
    assert_int_equal(session_time_of(f.session.header, clock), clock & ~SESSION_CLOCK_RESTS);
    sys_forbid(true);
    assert_int_equal(session_time_of(f.session.header, clock), clock & ~SESSION_CLOCK_RESTS);
    sys_forbid(false);
    tear_down();
}

static void a_wake_before_the_sleep_counts_and_the_end_is_not_awaited(void **state)
{
    (void)state;
    set_up(500); // the thread sees the rest late
    rest();
    session_wake_recorder(f.session.header);
    assert_false(session_clock_rest(&f.clock));
    session_clock_go_on(&f.clock);
    rest();
    tear_down(); // during a rest
}

// A thread that reads the word while it stands still reads the time at which that began.
static void a_reading_is_as_late_as_the_word_stood_still(void **state)
{
    (void)state;
    struct clock_gaps gaps = {0};
    clock_gaps_note(&gaps, 7, 7 + 1 + CLOCK_GAP_MS, 1); // of every day
    clock_gaps_note(&gaps, 20, 770, 1);
    clock_gaps_note(&gaps, 900, 950, 1);
    static const uint64_t cases[][2] = {{7, 0}, {19, 0}, {20, 750}, {21, 0}, {770, 0}, {900, 50}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(clock_gaps_error_ms(&gaps, cases[i][0]), cases[i][1]);
    }
    for (uint64_t i = 1; i < CLOCK_GAPS_MAX; i++) {
        clock_gaps_note(&gaps, 1000 * i, 1000 * i + 100, 1);
    }
    assert_int_equal(clock_gaps_error_ms(&gaps, 20), 0); // the oldest ones are forgotten
    assert_int_equal(clock_gaps_error_ms(&gaps, 900), 50);
    assert_int_equal(clock_gaps_error_ms(&gaps, UINT64_C(1000) * (CLOCK_GAPS_MAX - 1)), 100);
}

static void the_time_can_be_set_before_the_thread_comes(void **state)
{
    (void)state;
    enum {
        TICK_MS = 5000,
        LATE_MS = 30,
    };
    set_up(TICK_MS);
    (void)poll(NULL, 0, LATE_MS);
    session_clock_set(&f.clock);
    assert_in_range(session_clock_now(&f.clock), LATE_MS - 1, TICK_MS - 1);
    assert_int_equal(word(), session_clock_now(&f.clock));
    assert_true(session_clock_true_ms(&f.clock) >= session_clock_now(&f.clock));
    tear_down();
}

// After a stop of the whole recorder the main thread may ask before the clock's thread comes. Here
// that thread never does.
static void a_reading_is_late_before_the_thread_has_come(void **state)
{
    (void)state;
    enum {
        LATE_MS = 30,
    };
    set_up(1);
    struct session_clock late = {.session = &f.session,
                                 .start_ns = clock_monotonic_ns() - LATE_MS * NS_PER_MS,
                                 .tick_ns = NS_PER_MS,
                                 .lock = PTHREAD_MUTEX_INITIALIZER};
    assert_true(session_clock_error_ms(&late, 0) >= LATE_MS);
    tear_down();
}

// What a recorded thread and the recorder do, in the words of recorder_wake.h. The thread waits for
// the recorder without waking it, and the recorder has no timer: a lost wake-up is a deadlock.
static _Atomic uint32_t g_guard;
static _Atomic uint64_t g_recorded;
static _Atomic uint64_t g_counted;
static _Atomic bool g_is_over;

static void *record(void *seed)
{
    uint64_t latest = UINT64_MAX;
    uint64_t random = (uintptr_t)seed;
    while (!atomic_load(&g_is_over)) {
        const uint64_t pause_ns = hash_mix(random++) % 4000000;
        const uint64_t begin_ns = clock_monotonic_ns() + pause_ns;
        while (clock_monotonic_ns() < begin_ns) {
        }
        atomic_store_explicit(&g_guard, 1, memory_order_relaxed);
        const uint64_t clock =
            atomic_load_explicit(&f.session.header->clock_ms, memory_order_relaxed);
        if (clock != latest) {
            (void)session_time_of(f.session.header, clock);
            latest = clock;
        }
        const uint64_t number = 1 + atomic_fetch_add_explicit(&g_recorded, 1, memory_order_relaxed);
        atomic_store_explicit(&g_guard, 0, memory_order_release);
        while (atomic_load(&g_counted) < number && !atomic_load(&g_is_over)) {
            (void)sched_yield();
        }
    }
    return NULL;
}

// Do a pass. Return whether it was quiet.
static bool count(void)
{
    const bool is_in_hook = atomic_load_explicit(&g_guard, memory_order_acquire) != 0;
    const uint64_t recorded = atomic_load_explicit(&g_recorded, memory_order_relaxed);
    const bool is_new = recorded != atomic_load(&g_counted);
    atomic_store(&g_counted, recorded);
    return !is_in_hook && !is_new;
}

static void no_wake_up_is_lost(void **state)
{
    (void)state;
    set_up(1);
    pthread_t thread;
    uint64_t rests = 0;
    atomic_store(&g_is_over, false);
    assert_int_equal(pthread_create(&thread, NULL, record, (void *)(uintptr_t)42), 0);
    for (const uint64_t end_ms = clock_monotonic_ms() + HAMMER_MS; clock_monotonic_ms() < end_ms;) {
        if (!count() || !session_clock_rest(&f.clock)) {
            session_clock_go_on(&f.clock);
            continue;
        }
        (void)poll(NULL, 0, 2); // the pass a millisecond later
        if (!count() || !session_clock_rest(&f.clock)) {
            session_clock_go_on(&f.clock);
            continue;
        }
        await_wake();
        rests++;
    }
    atomic_store(&g_is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    print_message("%llu rests, %llu events\n", (unsigned long long)rests,
                  (unsigned long long)atomic_load(&g_recorded));
    assert_true(rests > 0);
    tear_down();
}

static uint32_t life(void)
{
    return atomic_load(&f.session.header->recorder_life);
}

static void the_kernel_notes_its_death_and_not_its_end(void **state)
{
    (void)state;
    set_up(1);
    await_time(1);
    assert_true(life() != 0);
    session_clock_stop(&f.clock);
    assert_int_equal(life(), 0);
    const pid_t recorder = fork(); // with the same session
    if (recorder == 0) {
        (void)!session_clock_start(&f.clock, &f.session, -1, 1, NULL);
        (void)pause();
        _exit(0);
    }
    const uint64_t end_ms = clock_monotonic_ms() + DEADLINE_MS;
    while (life() == 0) {
        assert_true(clock_monotonic_ms() < end_ms);
        (void)poll(NULL, 0, 1);
    }
    const uint64_t before = word();
    while (word() == before) { // by its first tick the kernel knows of the word
        assert_true(clock_monotonic_ms() < end_ms);
        (void)poll(NULL, 0, 1);
    }
    assert_int_equal(life() & FUTEX_OWNER_DIED, 0);
    assert_int_equal(kill(recorder, SIGKILL), 0);
    assert_int_equal(waitpid(recorder, NULL, 0), recorder);
    assert_int_equal(life() & FUTEX_OWNER_DIED, FUTEX_OWNER_DIED);
    session_release(&f.session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rest_stands_still_until_its_time_is_set),
        cmocka_unit_test(a_recorded_thread_gets_the_time_and_ends_the_rest),
        cmocka_unit_test(a_wake_before_the_sleep_counts_and_the_end_is_not_awaited),
        cmocka_unit_test(a_reading_is_as_late_as_the_word_stood_still),
        cmocka_unit_test(the_time_can_be_set_before_the_thread_comes),
        cmocka_unit_test(a_reading_is_late_before_the_thread_has_come),
        cmocka_unit_test(the_kernel_notes_its_death_and_not_its_end),
        cmocka_unit_test(no_wake_up_is_lost),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
