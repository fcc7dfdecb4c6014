// SPDX-License-Identifier: MIT
#include "target/preload/record/record_guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"

// A forked child inherits the pointer to its parent's state. When the parent has ended, the
// recorder gives that lane's memory back, and all of it reads as zero.
static void a_state_that_reads_as_zero_is_nobodys(void **state)
{
    (void)state;
    static struct thread_state recycled;
    thread_way_set_state(&recycled);
    assert_int_equal(process_generation(), 0); // nothing has been joined
    assert_null(guard_enter((uint64_t)__builtin_frame_address(0)));
    assert_int_equal(recycled.guard, 0);
    assert_false(guard_is_nested());
    thread_way_set_state(NULL);
}

// A handler may come when a hook has left its guard and an earlier handler's events are not sent
// yet. They may be about the same blocks, so its own event must not go before them.
static void a_thread_with_events_to_send_enters_only_behind_them(void **state)
{
    (void)state;
    static struct process_page page;
    static struct thread_state t;
    struct process_page *before = g_process;
    g_process = &page;
    atomic_store(&page.generation, 7);
    t.generation = 7;
    assert_true(guard_may_enter(&t));
    atomic_store(&t.deferred.room, sizeof(struct deferred_event));
    assert_false(guard_may_enter(&t));
    atomic_store(&t.deferred.room, 0);
    guard_take(&t, 1);
    assert_false(guard_may_enter(&t));
    g_process = before;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_that_reads_as_zero_is_nobodys),
        cmocka_unit_test(a_thread_with_events_to_send_enters_only_behind_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
