// SPDX-License-Identifier: MIT
// Tests that a thread gets its state also when another thread has just ended the recording.
#include "target/preload/process/thread_state.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <cmocka.h>

#include "base/compiler.h"
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
    memset(&page, 0, sizeof(page));
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

// The parts of a lane's memory, in their order: none reaches into the next one.
static void the_memory_of_a_lane_is_divided(void **state)
{
    static const struct {
        uint32_t wanted;
        uint32_t frames;
    } cases[] = {{0, 8}, {7, 8}, {8, 8}, {9, 9}, {1023, 1023}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        g_session->max_frames = cases[i].wanted;
        struct thread_state *t = thread_state_open();
        assert_non_null(t);
        assert_int_equal(t->max_frames, cases[i].frames);
        const uint8_t *memory = (const uint8_t *)t;
        const struct stack_dictionary *d = &t->stacks;
        const uint8_t *modules = (const uint8_t *)d->modules.grown;
        const uint8_t *names = (const uint8_t *)d->stacks.grown;
        assert_ptr_equal(t->unwind, memory + 4096);
        assert_true(modules > (const uint8_t *)t->unwind);
        assert_int_equal((uintptr_t)modules % 4096, 0);
        assert_int_equal((uintptr_t)names % 4096, 0);
        assert_true(names > modules);
        assert_ptr_equal(d->nodes.grown, d->stacks.grown + d->stacks.max);
        assert_true((const uint8_t *)(d->nodes.grown + d->nodes.max) <= t->deferred.memory);
        assert_ptr_equal(t->deferred.memory + DEFERRED_BYTES, memory + LANE_STATE_BYTES);
        assert_ptr_equal(thread_state_lane(t), session_lane(g_session, 0));
        assert_int_equal(part(state), 0); // there is one lane
        assert_int_equal(join(state), 0);
    }
}

// The state has the thread's name, which is sent if it is not the process's. The signals that were
// blocked meanwhile are not any more.
static void a_name_of_its_own_is_pending(void **state)
{
    char before[THREAD_NAME_BYTES];
    sigset_t blocked;
    assert_int_equal(prctl(PR_GET_NAME, before), 0);
    for (int is_own = 0; is_own < 2; is_own++) {
        assert_int_equal(prctl(PR_SET_NAME, is_own != 0 ? "its own name" : process_name()), 0);
        const struct thread_state *t = thread_state_open();
        assert_int_equal(t->name_pending, is_own);
        assert_string_equal(t->name, is_own != 0 ? "its own name" : process_name());
        assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &blocked), 0);
        assert_int_equal(sigismember(&blocked, SIGUSR1), 0);
        assert_int_equal(part(state), 0); // there is one lane
        assert_int_equal(join(state), 0);
    }
    assert_int_equal(prctl(PR_SET_NAME, before), 0);
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
        cmocka_unit_test_setup_teardown(the_memory_of_a_lane_is_divided, join, part),
        cmocka_unit_test_setup_teardown(a_name_of_its_own_is_pending, join, part),
        cmocka_unit_test_setup_teardown(another_thread_may_leave_meanwhile, join, part),
        cmocka_unit_test_setup_teardown(what_has_no_room_is_counted_after_another_thread_left, join,
                                        part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
