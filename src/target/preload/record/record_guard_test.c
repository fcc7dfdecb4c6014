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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_that_reads_as_zero_is_nobodys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
