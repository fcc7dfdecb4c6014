// SPDX-License-Identifier: MIT
// Tests of stamp: readings of the processor's clock before and after the session's base, and the
// counter.
#include "session/stamp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"

static void a_reading_counts_from_the_base(void **state)
{
    (void)state;
    static const struct {
        uint64_t base;
        uint64_t reading;
        uint64_t wanted;
    } cases[] = {
        {0, 1, 1},
        {1000, 1001, 1},
        {1000, 5000, 4000},
        {1000, 1000 + STAMP_MAX, STAMP_MAX},
        {1000, 1000 + STAMP_MAX + 6, 5}, // after a round
        {UINT64_MAX - 10, 5, 16},
    };
    static struct session_header session = {.stamp_source = STAMPS_OF_PROCESSOR};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        session.stamp_base = cases[i].base;
        assert_int_equal(stamp_of_reading(&session, cases[i].reading), cases[i].wanted);
    }
    session.stamp_base = 1; // the clock was read before now, and is not at the base any more
    assert_int_not_equal(stamp_of_reading(&session, 1), 0);
    const uint64_t before = stamp_now(&session);
    assert_in_range(stamp_now(&session), before, STAMP_MAX);
}

static void the_counter_does_not_look_at_the_clock(void **state)
{
    (void)state;
    static struct session_header session = {.stamp_source = STAMPS_OF_COUNTER, .stamp_base = 1000};
    for (uint64_t i = 1; i < 5; i++) {
        assert_int_equal(i % 2 == 0 ? stamp_now(&session) : stamp_of_reading(&session, 5000), i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reading_counts_from_the_base),
        cmocka_unit_test(the_counter_does_not_look_at_the_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
