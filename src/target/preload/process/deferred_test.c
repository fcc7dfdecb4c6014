// SPDX-License-Identifier: MIT
// Tests that deferred events come out as they went in, any number of times, and that events without
// room are counted.
#include "target/preload/process/deferred.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "target/preload/process/process.h"

struct fixture {
    _Alignas(8) uint8_t memory[DEFERRED_BYTES];
    struct deferred deferred;
};

static struct session_header test_session;

// Join a session that consists only of its header.
static int join(void **state)
{
    (void)state;
    static struct process_page page;
    memset(&page, 0, sizeof(page));
    memset(&test_session, 0, sizeof(test_session));
    atomic_store(&page.session, &test_session);
    process_mapping()->header = &test_session;
    g_process = &page;
    return 0;
}

static void prepare(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    f->deferred.memory = f->memory;
}

// The linker's: where this program's code is.
extern const char executable_start[] __asm__("__executable_start");
extern const char etext[];

struct seen {
    uint64_t addresses[DEFERRED_BYTES / 32];
    uint32_t frames[DEFERRED_BYTES / 32];
    uint64_t callers[DEFERRED_BYTES / 32]; // the innermost frame's address
    uint32_t count;
    struct deferred *put_more; // the handler that comes in the middle
};

static void see(void *context, const struct deferred_event *event)
{
    struct seen *seen = context;
    seen->addresses[seen->count] = event->event.address;
    seen->callers[seen->count] = event->count > 0 ? event->frames[0].pc : 0;
    seen->frames[seen->count++] = event->count;
    if (seen->put_more != NULL) {
        const struct event more = {.kind = EVENT_FREE, .address = 0x999};
        deferred_put(seen->put_more, &more, NULL, 64);
        seen->put_more = NULL;
    }
}

NOINLINE static void put_alloc(struct deferred *d, uint64_t address)
{
    const struct unwind_regs caller = unwind_caller_regs();
    const struct event event = {.kind = EVENT_ALLOC, .address = address, .size_bytes = 8};
    deferred_put(d, &event, &caller, 64);
}

static void events_keep_their_order_and_stacks(void **state)
{
    (void)state;
    static struct fixture f;
    static struct seen seen;
    prepare(&f);
    memset(&seen, 0, sizeof(seen));
    seen.put_more = &f.deferred;
    for (uint64_t i = 0; i < 20; i++) {
        const struct event event = {.kind = EVENT_FREE, .address = 2 * i};
        deferred_put(&f.deferred, &event, NULL, 64);
        put_alloc(&f.deferred, 2 * i + 1);
    }
    deferred_drain(&f.deferred, see, &seen);
    assert_int_equal(seen.count, 41);
    for (uint32_t i = 0; i < 40; i++) {
        assert_int_equal(seen.addresses[i], i);
        assert_true(i % 2 == 0 ? seen.frames[i] == 0 : seen.frames[i] >= 2);
        if (i % 2 != 0) {
            assert_in_range(seen.callers[i], (uintptr_t)executable_start, (uintptr_t)etext);
        }
    }
    assert_int_equal(seen.addresses[40], 0x999); // the event that came while the others were sent
    assert_int_equal(f.deferred.room, 0);
    deferred_drain(&f.deferred, see, &seen);
    assert_int_equal(seen.count, 41);
    assert_int_equal(test_session.counters[LOST_reentrant], 0);
}

static void what_does_not_fit_is_counted_and_the_next_ones_fit_again(void **state)
{
    (void)state;
    static struct fixture f;
    static struct seen seen;
    prepare(&f);
    const uint64_t most = DEFERRED_BYTES / sizeof(struct deferred_event);
    for (int round = 0; round < 3; round++) {
        memset(&seen, 0, sizeof(seen));
        for (uint64_t i = 0; i < most + 7; i++) {
            const struct event event = {.kind = EVENT_FREE, .address = i};
            deferred_put(&f.deferred, &event, NULL, 64);
        }
        deferred_drain(&f.deferred, see, &seen);
        assert_int_equal(seen.count, most);
        assert_int_equal(seen.addresses[most - 1], most - 1);
    }
    assert_int_equal(test_session.counters[LOST_reentrant], 3 * 7);
}

// Simulate a handler that left by longjmp after it had taken its room, and before or after it had
// moved `used`.
static void leave_half_way(struct deferred *d, bool has_moved)
{
    struct deferred_event *event = (struct deferred_event *)(void *)(d->memory + (uint32_t)d->room);
    event->bytes = sizeof(*event);
    d->room += has_moved ? sizeof(*event) : 0;
}

static void an_event_that_was_never_finished_is_stepped_over_and_counted(void **state)
{
    (void)state;
    static struct fixture f;
    static struct seen seen;
    prepare(&f);
    memset(&seen, 0, sizeof(seen));
    for (uint32_t round = 0; round < 6; round++) {
        const struct event event = {.kind = EVENT_FREE, .address = round};
        seen.count = 0;
        deferred_put(&f.deferred, &event, NULL, 64);
        leave_half_way(&f.deferred, round % 2 == 0);
        deferred_put(&f.deferred, &event, NULL, 64);
        leave_half_way(&f.deferred, round % 3 == 0);
        deferred_drain(&f.deferred, see, &seen);
        assert_int_equal(seen.count, 2);
        assert_int_equal(seen.addresses[0], round);
        assert_int_equal(seen.addresses[1], round);
        assert_int_equal(test_session.counters[LOST_reentrant], 2 * (round + 1));
        assert_int_equal(f.deferred.room, 0);
    }
}

struct left_sending {
    jmp_buf landing;
    uint32_t sent;
};

static void leave_while_sending(void *context, const struct deferred_event *event)
{
    struct left_sending *left = context;
    left->sent++;
    if (event->event.address == 1) {
        longjmp(left->landing, 1);
    }
}

// The next drain sends the rest, and nothing twice.
static void a_drain_that_was_left_half_way_goes_on_behind(void **state)
{
    (void)state;
    static struct fixture f;
    static struct seen seen;
    static struct left_sending left;
    prepare(&f);
    memset(&seen, 0, sizeof(seen));
    for (uint64_t i = 0; i < 4; i++) {
        const struct event event = {.kind = EVENT_FREE, .address = i};
        deferred_put(&f.deferred, &event, NULL, 64);
    }
    if (setjmp(left.landing) == 0) {
        deferred_drain(&f.deferred, leave_while_sending, &left);
    }
    assert_int_equal(left.sent, 2);
    deferred_drain(&f.deferred, see, &seen);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.addresses[0], 2);
    assert_int_equal(test_session.counters[LOST_reentrant], 1);
}

static void with_every_walker_in_use_an_alloc_is_counted(void **state)
{
    (void)state;
    static struct fixture f;
    static struct seen seen;
    prepare(&f);
    memset(&seen, 0, sizeof(seen));
    atomic_store(&g_process->walkers, UINT32_MAX);
    put_alloc(&f.deferred, 1);
    deferred_drain(&f.deferred, see, &seen);
    assert_int_equal(seen.count, 0);
    assert_int_equal(test_session.counters[LOST_reentrant], 1);
}

// Simulate a handler that left by longjmp in the middle of its walk.
static void the_walker_of_a_handler_that_is_gone_is_given_back(void **state)
{
    (void)state;
    static struct fixture f;
    static struct seen seen;
    prepare(&f);
    memset(&seen, 0, sizeof(seen));
    atomic_store(&g_process->walkers, UINT32_MAX); // one of them ours, the rest of other threads
    atomic_store(&f.deferred.walkers, 4);
    deferred_forget_walkers(&f.deferred);
    assert_int_equal(g_process->walkers, ~UINT32_C(4));
    put_alloc(&f.deferred, 1);
    assert_int_equal(g_process->walkers, ~UINT32_C(4));
    assert_int_equal(f.deferred.walkers, 0);
    deferred_drain(&f.deferred, see, &seen);
    assert_int_equal(seen.count, 1);
    assert_int_equal(test_session.counters[LOST_reentrant], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(events_keep_their_order_and_stacks, join),
        cmocka_unit_test_setup(what_does_not_fit_is_counted_and_the_next_ones_fit_again, join),
        cmocka_unit_test_setup(an_event_that_was_never_finished_is_stepped_over_and_counted, join),
        cmocka_unit_test_setup(a_drain_that_was_left_half_way_goes_on_behind, join),
        cmocka_unit_test_setup(with_every_walker_in_use_an_alloc_is_counted, join),
        cmocka_unit_test_setup(the_walker_of_a_handler_that_is_gone_is_given_back, join),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
