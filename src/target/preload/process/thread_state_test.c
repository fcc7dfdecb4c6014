// SPDX-License-Identifier: MIT
// Tests that a thread gets its state also when another thread has just ended the recording.
#include "target/preload/process/thread_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/sys.h"
#include "target/preload/process/process.h"

enum {
    LANES = 1
};

static struct session_header *g_session;

// Join a session with room for one thread.
static int join(void **state)
{
    (void)state;
    static struct process_page page;
    g_session = mmap(NULL, SESSION_LANES_OFFSET + LANES * LANE_STRIDE, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(g_session, MAP_FAILED);
    g_session->max_frames = 64;
    page = (struct process_page){0};
    atomic_store(&page.session, g_session);
    atomic_store(&page.generation, (uint64_t)1 << 32);
    process_mapping()->header = g_session;
    process_mapping()->lane_count = LANES;
    g_process = &page;
    return 0;
}

static int part(void **state)
{
    (void)state;
    thread_way_set_state(NULL);
    return munmap(g_session, SESSION_LANES_OFFSET + LANES * LANE_STRIDE);
}

static void a_thread_opens_its_state(void **state)
{
    (void)state;
    const struct thread_state *t = thread_state_open();
    assert_non_null(t);
    assert_true(t->generation == process_generation());
    assert_ptr_equal(t->producer.session, g_session);
    assert_int_equal(t->max_frames, 64);
}

// The thread found the session, and then another thread found the recorder dead. The state is of no
// generation, so that no later event uses it.
static void another_thread_may_leave_meanwhile(void **state)
{
    (void)state;
    process_leave();
    const struct thread_state *t = thread_state_open();
    assert_non_null(t);
    assert_true(t->generation == UINT64_MAX);
    assert_ptr_equal(t->producer.session, g_session);
}

static void what_has_no_room_is_counted_after_another_thread_left(void **state)
{
    (void)state;
    assert_non_null(thread_state_open());
    process_leave();
    assert_null(thread_state_open());
    assert_int_equal(g_session->counters[LOST_no_lane], 1);
    sys_forbid(true);
    assert_null(thread_state_open());
    sys_forbid(false);
    assert_int_equal(g_session->counters[LOST_seccomp], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_thread_opens_its_state, join, part),
        cmocka_unit_test_setup_teardown(another_thread_may_leave_meanwhile, join, part),
        cmocka_unit_test_setup_teardown(what_has_no_room_is_counted_after_another_thread_left, join,
                                        part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
