// SPDX-License-Identifier: MIT
// A thread that begins a tick while the recorder takes its nursery's lock.
//
// The recorder's page is read-only, so that its first store faults. That is the store of the lock,
// after it has seen that the thread is idle. The handler lets the thread go on there, and makes the
// page writable again.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/mman.h>

#include "recorder/session/nursery_reader.h"
#include "recorder/session/test_nursery.h"

enum {
    OLD_SLOT = 1,
    NEW_SLOT = 2,
};

static struct {
    struct test_nursery f;
    bool wakes; // in the handler
    unsigned faults;
} world;

static void allocate(uint32_t at, uint32_t slot)
{
    assert_true(nursery_begin(world.f.lanes));
    assert_true(nursery_allocate(world.f.lanes, test_address(at), 40, slot));
}

// The lane in the recorder's mapping.
static struct lane_header *lane_of_recorder(void)
{
    return session_lane(world.f.on.session.header, 0);
}

static void protect_lock(int protection)
{
    const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    char *lock = (char *)lane_of_recorder() + offsetof(struct lane_header, nursery.owner);
    assert_int_equal(mprotect(lock - (uintptr_t)lock % page_bytes, page_bytes, protection), 0);
}

static void on_fault(int signal)
{
    (void)signal;
    world.faults++;
    protect_lock(PROT_READ | PROT_WRITE);
    if (world.wakes) {
        allocate(2, NEW_SLOT);
    }
}

static void the_lock_is_not_taken_from_a_thread_that_has_begun_a_tick(void **state)
{
    (void)state;
    const struct sigaction action = {.sa_handler = on_fault};
    struct sigaction before;
    assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
    for (int wakes = 0; wakes < 2; wakes++) {
        world.wakes = wakes != 0;
        world.faults = 0;
        const struct lane_producer *p = test_nursery_open_one(&world.f);
        const struct nursery *n = &p->lane->nursery;
        allocate(1, OLD_SLOT);
        test_nursery_advance(&world.f, 2); // time passes, and the thread does nothing
        protect_lock(PROT_READ);
        const bool has_it = nursery_reader_lock(lane_of_recorder(), world.f.clock_ms);
        assert_int_equal(world.faults, 1);
        assert_int_equal(has_it, !world.wakes);
        assert_int_equal(atomic_load(&n->owner), has_it ? NURSERY_OF_RECORDER : NURSERY_FREE);
        if (has_it) {
            nursery_reader_unlock(lane_of_recorder());
        }
        test_nursery_pass(&world.f, true);
        assert_int_equal(world.f.on.aggregator.totals.sums.allocations, world.wakes ? 2 : 1);
        test_nursery_close(&world.f);
    }
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lock_is_not_taken_from_a_thread_that_has_begun_a_tick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
