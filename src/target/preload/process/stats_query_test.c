// SPDX-License-Identifier: MIT
// stats_query_await: which response ends a wait, also where the numbers of queries begin anew.
#include "target/preload/process/stats_query.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/mman.h>

#include "base/compiler.h"

// The session has ended, so a wait without a response is over.
static void only_its_own_response_and_later_ones_end_a_wait(void **state)
{
    (void)state;
    static struct lane_header lane;
    static const struct {
        uint32_t answered; // the latest query with a response; 0: none
        uint32_t number;
        enum stats_query_end end;
    } cases[] = {
        {7, 7, STATS_QUERY_ANSWERED},
        {8, 7, STATS_QUERY_SUPERSEDED},
        {6, 7, STATS_QUERY_OVER},
        {0, 1, STATS_QUERY_OVER},
        {UINT32_MAX, UINT32_MAX, STATS_QUERY_ANSWERED},
        {1, UINT32_MAX, STATS_QUERY_SUPERSEDED},
        {UINT32_MAX, 1, STATS_QUERY_OVER},
    };
    // A wait looks at the slot of its process, too.
    struct session_header *session = mmap(NULL, SESSION_LANES_OFFSET, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(session != MAP_FAILED);
    atomic_store(&session->state, SESSION_ENDED);
    atomic_store(&lane.answer.values[ANSWER_ALLOCATIONS], 5);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t values[ANSWER_VALUES] = {0};
        atomic_store(&lane.answer.answered, cases[i].answered);
        assert_int_equal(stats_query_await(session, &lane, cases[i].number, values), cases[i].end);
        assert_true(cases[i].end != STATS_QUERY_ANSWERED || values[ANSWER_ALLOCATIONS] == 5);
    }
    assert_int_equal(munmap(session, SESSION_LANES_OFFSET), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_its_own_response_and_later_ones_end_a_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
