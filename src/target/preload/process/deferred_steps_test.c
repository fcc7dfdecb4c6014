// SPDX-License-Identifier: MIT
// Interrupts deferred after each of its instructions: by a handler that defers an event of its own,
// and by one that leaves by longjmp. The processor's trap flag finds the instructions (x86-64).
#include "target/preload/process/deferred.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

#include "target/preload/process/process.h"

#define TRAP_FLAG  0x100L
#define EVENTS_MAX 8u
#define STEPS_MAX  100000u

static struct {
    _Alignas(8) uint8_t memory[DEFERRED_BYTES];
    struct deferred deferred;
    unsigned seen[EVENTS_MAX]; // by address
    struct session_header session;
} g;

// The interruption after instruction number `at`, counted from 0.
static struct {
    unsigned step;
    unsigned at;
    bool leaves;
    sigjmp_buf landing;
} g_trap;

static void put(uint64_t address)
{
    const struct event event = {.kind = EVENT_FREE, .address = address};
    deferred_put(&g.deferred, &event, NULL, 64);
}

static void see(void *context, const struct deferred_event *event)
{
    (void)context;
    g.seen[event->event.address]++;
}

static void drain(void)
{
    deferred_drain(&g.deferred, see, NULL);
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    if (g_trap.step++ != g_trap.at) {
        return;
    }
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    if (g_trap.leaves) {
        siglongjmp(g_trap.landing, 1);
    }
    put(7);
}

// The compiler may keep data below sp, around the flag's instructions.
static void set_trap_flag(void)
{
    __asm__ volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\t"
                     "leaq 128(%%rsp), %%rsp" ::
                         : "memory", "cc");
}

static void clear_trap_flag(void)
{
    __asm__ volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\tandq $-0x101, (%%rsp)\n\tpopfq\n\t"
                     "leaq 128(%%rsp), %%rsp" ::
                         : "memory", "cc");
}

static void put_one(void)
{
    put(0);
}

static void begin(unsigned events)
{
    static struct process_page page;
    memset(&g, 0, sizeof(g));
    memset(&page, 0, sizeof(page));
    g.deferred.memory = g.memory;
    atomic_store(&page.session, &g.session);
    process_mapping()->header = &g.session;
    g_process = &page;
    for (unsigned i = 0; i < events; i++) {
        put(i);
    }
}

// Run `work` and let the handler act after its instruction `at`. False if it has fewer.
static bool interrupt(void (*work)(void), unsigned at, bool leaves)
{
    g_trap.step = 0;
    g_trap.at = at;
    g_trap.leaves = leaves;
    if (sigsetjmp(g_trap.landing, 1) == 0) {
        set_trap_flag();
        work();
        clear_trap_flag();
    }
    return g_trap.step > at;
}

static uint64_t lost(void)
{
    return atomic_load(&g.session.counters[LOST_reentrant]);
}

static void assert_empty(void)
{
    static const uint8_t zeros[DEFERRED_BYTES];
    assert_int_equal(g.deferred.room, 0);
    assert_memory_equal(g.memory, zeros, sizeof(zeros));
}

static void an_event_of_a_handler_and_that_which_it_interrupted_are_both_kept(void **state)
{
    (void)state;
    unsigned at = 0;
    for (begin(0); interrupt(put_one, at, false); begin(0)) {
        drain();
        assert_int_equal(g.seen[0], 1);
        assert_int_equal(g.seen[7], 1);
        assert_int_equal(lost(), 0);
        assert_empty();
        assert_true(++at < STEPS_MAX);
    }
    assert_true(at > 50);
}

static void
an_event_that_is_left_half_way_is_at_most_counted_and_those_behind_are_kept(void **state)
{
    (void)state;
    unsigned at = 0;
    for (begin(0); interrupt(put_one, at, true); begin(0)) {
        put(1);
        put(2);
        drain();
        assert_true(g.seen[0] + lost() <= 1); // neither: it had not taken its room
        assert_int_equal(g.seen[1], 1);
        assert_int_equal(g.seen[2], 1);
        assert_empty();
        assert_true(++at < STEPS_MAX);
    }
    assert_true(at > 50);
}

static void an_event_that_comes_while_others_are_sent_is_sent_with_them(void **state)
{
    (void)state;
    unsigned at = 0;
    for (begin(3); interrupt(drain, at, false); begin(3)) {
        drain();
        assert_int_equal(g.seen[0] + g.seen[1] + g.seen[2], 3);
        assert_int_equal(g.seen[7], 1);
        assert_int_equal(lost(), 0);
        assert_empty();
        assert_true(++at < STEPS_MAX);
    }
    assert_true(at > 50);
}

static void
a_drain_that_is_left_half_way_sends_nothing_twice_and_loses_nothing_uncounted(void **state)
{
    (void)state;
    unsigned at = 0;
    for (begin(3); interrupt(drain, at, true); begin(3)) {
        put(3);
        drain();
        for (unsigned i = 0; i < 3; i++) {
            assert_true(g.seen[i] <= 1);
        }
        // The event that was being sent may have been sent and counted too.
        const uint64_t accounted = g.seen[0] + g.seen[1] + g.seen[2] + lost();
        assert_in_range(accounted, 3, 4);
        assert_int_equal(g.seen[3], 1);
        assert_empty();
        assert_true(++at < STEPS_MAX);
    }
    assert_true(at > 50);
}

int main(void)
{
    const struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    (void)sigaction(SIGTRAP, &action, NULL); // without it the first test is killed
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_of_a_handler_and_that_which_it_interrupted_are_both_kept),
        cmocka_unit_test(
            an_event_that_is_left_half_way_is_at_most_counted_and_those_behind_are_kept),
        cmocka_unit_test(an_event_that_comes_while_others_are_sent_is_sent_with_them),
        cmocka_unit_test(
            a_drain_that_is_left_half_way_sends_nothing_twice_and_loses_nothing_uncounted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
