// SPDX-License-Identifier: MIT
// Orders of the steps of threads that change one shared sum. In each the peak is within its bound,
// and so is the sum of what the threads held at that peak.
//
// A step ends before each access to shared memory (test_steps.h) and each event. One thread runs at
// a time; a schedule says after which steps another one goes on. All schedules with up to two such
// changes are tried for written scripts of two threads; with one change, by night two, for those of
// three and for drawn ones. A thread that ends gives way to the first one that has not.
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>

#include "base/test_support/by_night.h"
#include "base/test_support/random_numbers.h"
#include "session/books/peak_share.h"
#include "session/books/shared_sum.h"
#include "session/books/test_steps.h"

enum {
    THREADS_MAX = 3,
    EVENTS_MAX = 8,
    STEPS_MAX = 2000,
    CHANGES_MAX = 2, // of who runs
    SIZES = 6,
    DRAWN = 60, // scripts
};

static const int64_t g_sizes[SIZES] = {30, 47, 200, 900, 1000, 20000};

// n: allocate a block of size n - 1; -n: free one of any thread; 0: end.
struct script {
    uint32_t threads;
    int events[THREADS_MAX][EVENTS_MAX];
    bool stays[THREADS_MAX]; // the recorder ends it
    bool has_no_part;        // the last thread is the recorder's, of blocks in no book
};

struct change {
    uint32_t step;
    uint32_t to;
};

static struct {
    struct shared_sum sum;
    const struct script *script;
    struct sum_part parts[THREADS_MAX];
    struct peak_share shares[THREADS_MAX];
    uint32_t blocks[SIZES]; // that may be freed
    int64_t least_bytes;    // of events that have ended, without frees that have begun
    int64_t least_peak;
    int64_t most_bytes;
    int64_t most_peak;
    uint64_t kept_max;
    struct change changes[CHANGES_MAX];
    uint32_t change_count;
    uint32_t changed;
    // A thread lost its processor in shared_sum_try_peak, which decides no order; or blocks have no
    // owner.
    bool is_doubtful;
    uint32_t steps;
    uint32_t running;
    uint32_t unfinished; // bits
    uint32_t notes_peak; // bits
    uint8_t ran[STEPS_MAX];
    uint8_t could_run[STEPS_MAX];
} g;

static sem_t g_turns[THREADS_MAX + 1]; // the last one is of who tries
static uint64_t g_schedules;

static void wait_for_turn(uint32_t thread)
{
    while (sem_wait(&g_turns[thread]) != 0) {
    }
}

static void give_turn(uint32_t thread)
{
    g.running = thread;
    (void)sem_post(&g_turns[thread]); // cannot fail: it is 0
}

void test_step(void)
{
    const uint32_t self = g.running;
    if (self == THREADS_MAX) {
        return;
    }
    const uint32_t now = g.steps++;
    if (now >= STEPS_MAX) {
        abort();
    }
    g.ran[now] = (uint8_t)self;
    g.could_run[now] = (uint8_t)g.unfinished;
    if (g.sum.kept_bytes > g.kept_max) {
        g.kept_max = g.sum.kept_bytes;
    }
    if (g.changed < g.change_count && g.changes[g.changed].step == now) {
        g.is_doubtful |= (g.notes_peak >> self & 1) != 0;
        give_turn(g.changes[g.changed++].to);
        wait_for_turn(self);
    }
}

static void raise(int64_t *bytes, int64_t *peak, int64_t size)
{
    *bytes += size;
    *peak = *bytes > *peak ? *bytes : *peak;
}

static bool has_part(uint32_t thread)
{
    return !g.script->has_no_part || thread + 1 < g.script->threads;
}

static void count(uint32_t thread, int64_t delta)
{
    if (!has_part(thread)) {
        shared_sum_change(&g.sum, delta);
        return;
    }
    const uint32_t number = shared_sum_number(&g.sum);
    peak_share_add(&g.shares[thread], shared_sum_add(&g.sum, &g.parts[thread], number, delta),
                   delta);
}

static void allocate(uint32_t thread, uint32_t size)
{
    raise(&g.most_bytes, &g.most_peak, g_sizes[size]);
    count(thread, g_sizes[size]);
    raise(&g.least_bytes, &g.least_peak, g_sizes[size]);
    g.blocks[size]++;
}

static void free_one(uint32_t thread, uint32_t size)
{
    if (g.blocks[size] == 0) {
        return;
    }
    g.blocks[size]--;
    g.least_bytes -= g_sizes[size];
    if (has_part(thread)) {
        g.notes_peak |= 1u << thread;
        if (!shared_sum_before_free(&g.sum, &g.parts[thread])) {
            (void)shared_sum_send(&g.sum, &g.parts[thread]);
        }
        g.notes_peak &= ~(1u << thread);
    }
    count(thread, -g_sizes[size]);
    g.most_bytes -= g_sizes[size];
}

static void leave(uint32_t thread)
{
    (void)shared_sum_send(&g.sum, &g.parts[thread]);
    shared_sum_release(&g.sum, &g.parts[thread]);
    shared_sum_leave(&g.sum, 1);
}

static void play(uint32_t thread)
{
    if (has_part(thread)) {
        shared_sum_join(&g.sum, &g.parts[thread]);
    }
    for (uint32_t i = 0; i < EVENTS_MAX && g.script->events[thread][i] != 0; i++) {
        const int event = g.script->events[thread][i];
        test_step(); // between two events
        if (event > 0) {
            allocate(thread, (uint32_t)event - 1);
        } else {
            free_one(thread, (uint32_t)-event - 1);
        }
    }
    if (!g.script->stays[thread] && has_part(thread)) {
        leave(thread);
    }
}

static void *work(void *context)
{
    const uint32_t self = (uint32_t)(uintptr_t)context;
    for (;;) {
        wait_for_turn(self);
        if (g.script == NULL) {
            return NULL;
        }
        play(self);
        g.unfinished &= ~(1u << self);
        give_turn(g.unfinished != 0 ? (uint32_t)__builtin_ctz(g.unfinished) : THREADS_MAX);
    }
}

static void fail_schedule(const char *what, int64_t found, int64_t low, int64_t high)
{
    for (uint32_t i = 0; i < g.change_count; i++) {
        print_error("step %u: to thread %u\n", g.changes[i].step, g.changes[i].to);
    }
    for (uint32_t i = 0; i < g.script->threads; i++) {
        for (uint32_t k = 0; k < EVENTS_MAX; k++) {
            print_error(" %d", g.script->events[i][k]);
        }
        print_error("%s\n", g.script->stays[i] ? " stays" : "");
    }
    fail_msg("%s: %lld is not from %lld to %lld", what, (long long)found, (long long)low,
             (long long)high);
}

static void expect_between(const char *what, int64_t found, int64_t low, int64_t high)
{
    if (found < low || found > high) {
        fail_schedule(what, found, low, high);
    }
}

static void judge(void)
{
    for (uint32_t i = 0; i < g.script->threads; i++) {
        if (g.script->stays[i] && has_part(i)) {
            leave(i);
        }
    }
    const struct sum_value value = shared_sum_read(&g.sum);
    const int64_t error = (int64_t)shared_sum_error(&g.sum, &value);
    const int64_t peak = (int64_t)value.peak_bytes;
    int64_t owners = 0;
    for (uint32_t i = 0; i < g.script->threads; i++) {
        owners += peak_share_at(&g.shares[i], value.number);
    }
    expect_between("sum", value.sum_bytes, g.least_bytes, g.most_bytes);
    expect_between("number", shared_sum_number(&g.sum), value.number, UINT32_MAX);
    expect_between("kept", (int64_t)g.sum.kept_bytes, 0, 0);
    expect_between("peak", peak, g.least_peak - error, g.most_peak + error);
    expect_between("bound", error, 0, (int64_t)g.kept_max);
    if (!g.is_doubtful) {
        expect_between("owners", owners, peak - error, peak + error);
    }
}

static void try_schedule(const struct script *script, const struct change *changes, uint32_t count)
{
    memset(&g, 0, sizeof(g));
    g.script = script;
    g.is_doubtful = script->has_no_part;
    g.change_count = count;
    memcpy(g.changes, changes, count * sizeof(*changes));
    g.unfinished = (1u << script->threads) - 1;
    give_turn(0);
    wait_for_turn(THREADS_MAX);
    g_schedules++;
    judge();
}

// Try the schedules that begin with these changes. `most`: how many may follow.
static void
try_all(const struct script *script, struct change *changes, uint32_t count, uint32_t most)
{
    uint8_t ran[STEPS_MAX];
    uint8_t could_run[STEPS_MAX];
    try_schedule(script, changes, count);
    const uint32_t steps = g.steps;
    memcpy(ran, g.ran, steps);
    memcpy(could_run, g.could_run, steps);
    for (uint32_t at = count > 0 ? changes[count - 1].step + 1 : 0; most > 0 && at < steps; at++) {
        for (uint32_t to = 0; to < script->threads; to++) {
            if (to != ran[at] && (could_run[at] >> to & 1) != 0) {
                changes[count] = (struct change){.step = at, .to = to};
                try_all(script, changes, count + 1, most - 1);
            }
        }
    }
}

static void try_script(const struct script *script, uint32_t most)
{
    struct change changes[CHANGES_MAX];
    try_all(script, changes, 0, most);
}

static void written_scripts_in_each_order(void **state)
{
    (void)state;
    static const struct script scripts[] = {
        // One is at its peak and keeps it as the other one comes, who frees it.
        {.threads = 2, .events = {{5, 4, -4, 4}, {-4, -5}}, .stays = {true}},
        // ... who sets another one, below that, and then frees it, or nearly all.
        {.threads = 2, .events = {{5, 4, -4, -5}, {3, 4, -4, -3}}},
        {.threads = 2, .events = {{6, 5, -5, 1}, {3, -3, -6}}},
        // A large block comes and goes at the other one's peak.
        {.threads = 2, .events = {{6, -6, 6, -6}, {4, 4, -4, -4}}, .stays = {false, true}},
        // Blocks in no book come and go as a thread is at its peak.
        {.threads = 2, .events = {{5, 4, -4, 4, -5}, {3, -3, 5}}, .has_no_part = true},
        {.threads = 2, .events = {{6, 4, -4, 4}, {-6}}, .has_no_part = true},
        // Threads come and go, and another one is alone again.
        {.threads = 3, .events = {{1, 2, -2, 5, -5}, {3, -3}, {4, -4}}, .stays = {true}},
    };
    const uint32_t most = step_by_day(2) == 1 ? 2 : 1;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        try_script(&scripts[i], scripts[i].threads == 2 ? 2 : most);
    }
}

static void draw(struct script *script, uint64_t *random)
{
    *script = (struct script){.threads = 2 + next_random(random) % 2,
                              .has_no_part = next_random(random) % 4 == 0};
    for (uint32_t i = 0; i < script->threads; i++) {
        const uint64_t events = 2 + next_random(random) % 4;
        for (uint32_t k = 0; k < events; k++) {
            const int size = 1 + (int)(next_random(random) % SIZES);
            script->events[i][k] = next_random(random) % 2 == 0 ? size : -size;
        }
        script->stays[i] = next_random(random) % 3 == 0;
    }
}

static void drawn_scripts_in_each_order(void **state)
{
    (void)state;
    const uint32_t most = step_by_day(2) == 1 ? 2 : 1;
    uint64_t random = 1;
    for (uint32_t i = 0; i < DRAWN; i++) {
        struct script script;
        draw(&script, &random);
        try_script(&script, most);
    }
}

static int begin(void **state)
{
    static pthread_t threads[THREADS_MAX];
    *state = threads;
    for (uint32_t i = 0; i <= THREADS_MAX; i++) {
        assert_int_equal(sem_init(&g_turns[i], 0, 0), 0);
    }
    for (uintptr_t i = 0; i < THREADS_MAX; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
    }
    g.running = THREADS_MAX;
    return 0;
}

static int end(void **state)
{
    const pthread_t *threads = *state;
    g.script = NULL;
    for (uint32_t i = 0; i < THREADS_MAX; i++) {
        (void)sem_post(&g_turns[i]);
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    print_message("%llu schedules\n", (unsigned long long)g_schedules);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_scripts_in_each_order),
        cmocka_unit_test(drawn_scripts_in_each_order),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
