// SPDX-License-Identifier: MIT
#include "recorder/processes/awaited_processes.h"

#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"

static void a_process_is_known_by_both_pids(void **state)
{
    (void)state;
    CLEANUP(awaited_process_vec_release) struct awaited_process_vec awaited = {0};
    struct aggregator_process own = {.record.pid = (uint32_t)getpid()};
    struct aggregator_process ended = {.record.pid = INT32_MAX};
    assert_int_equal(awaited_processes_add(&awaited, &ended), ERR_OK);
    assert_int_equal(awaited_processes_add(&awaited, &own), ERR_OK);
    struct inner_pid inner = pid_lookup_inner(getpid());
    assert_int_equal(awaited_processes_pid(&awaited, inner), getpid());
    awaited.items[1].inner.pid = ++inner.pid; // as in another namespace
    assert_int_equal(awaited_processes_pid(&awaited, inner), getpid());
    inner.pid_namespace++;
    assert_int_equal(awaited_processes_pid(&awaited, inner), 0);
    assert_null(awaited_processes_take(&awaited, getppid()));
    assert_ptr_equal(awaited_processes_take(&awaited, getpid()), &own);
    assert_null(awaited_processes_take(&awaited, getpid()));
    assert_int_equal(awaited.len, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_is_known_by_both_pids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
