// SPDX-License-Identifier: MIT
// A thread that begins a tick while the recorder takes its book's lock.
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

#include "recorder/session/book_reader.h"
#include "recorder/session/test_lanes.h"

enum {
    OLD_SLOT = 1,
    NEW_SLOT = 2,
};

static struct {
    struct test_lanes f;
    bool wakes; // in the handler
    unsigned faults;
} world;

static void allocate(uint32_t at, uint32_t slot)
{
    assert_true(lane_allocate(world.f.lanes, test_address(at), 40, slot));
}

// The lane in the recorder's mapping.
static struct lane_header *lane_of_recorder(void)
{
    return session_lane(world.f.on.session.header, 0);
}

static void protect_lock(int protection)
{
    const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    char *lock = (char *)lane_of_recorder() + offsetof(struct lane_header, book.owner);
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
        const struct lane_producer *p = world.f.lanes;
        test_lanes_open(&world.f, 1);
        const struct book_head *book = &p->lane->book;
        allocate(1, OLD_SLOT);
        test_lanes_advance(&world.f, 2); // time passes, and the thread does nothing
        protect_lock(PROT_READ);
        const bool has_it = book_reader_lock(lane_of_recorder(), world.f.clock_ms);
        assert_int_equal(world.faults, 1);
        assert_int_equal(has_it, !world.wakes);
        assert_int_equal(atomic_load(&book->owner), has_it ? BOOK_OF_RECORDER : BOOK_OF_NEITHER);
        if (has_it) {
            book_reader_unlock(lane_of_recorder());
        }
        test_lanes_pass(&world.f, true);
        assert_int_equal(world.f.on.aggregator.totals.sums.allocations, world.wakes ? 2 : 1);
        test_lanes_close(&world.f);
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
