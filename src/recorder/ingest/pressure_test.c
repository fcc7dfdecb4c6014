// SPDX-License-Identifier: MIT
// pressure: windows with and without pressure, and how long it lasts.
#include "recorder/ingest/pressure.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"

struct window {
    const char *what;
    uint64_t slept_ns;
    struct lane_load load;
    bool is_under_pressure;
};

static const struct window windows[] = {
    {"two lanes alike, no sleep", 0, {1000000, 500000}, true},
    {"four lanes, the busiest a third", 0, {900000, 300000}, true},
    {"the others bring just a quarter", 0, {400000, 300000}, true},
    {"the others bring less than a quarter", 0, {400000, 300001}, false},
    {"one lane alone", 0, {1000000, 1000000}, false},
    {"no lane at all", 0, {0, 0}, false},
    {"busy with something else", 0, {4095, 2000}, false},
    {"an eighth slept", PRESSURE_WINDOW_NS / 8, {1000000, 500000}, true},
    {"more than an eighth slept", PRESSURE_WINDOW_NS / 8 + 1, {1000000, 500000}, false},
    {"nothing but sleep", PRESSURE_WINDOW_NS, {1000000, 500000}, false},
};

static void a_window_is_judged_by_sleep_and_by_who_was_busy(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(windows); i++) {
        struct pressure pressure = {0};
        pressure_note_sleep(&pressure, windows[i].slept_ns);
        if (pressure_judge(&pressure, 1, &windows[i].load) != windows[i].is_under_pressure) {
            fail_msg("%s", windows[i].what);
        }
    }
}

static void sleeps_add_up_and_end_with_their_window(void **state)
{
    (void)state;
    static const struct lane_load busy = {1000000, 500000};
    struct pressure pressure = {0};
    pressure_note_sleep(&pressure, PRESSURE_WINDOW_NS / 16);
    pressure_note_sleep(&pressure, PRESSURE_WINDOW_NS / 16 + 1);
    assert_false(pressure_judge(&pressure, 1, &busy));
    assert_true(pressure_judge(&pressure, 2, &busy));
}

static void a_window_is_over_after_its_time(void **state)
{
    (void)state;
    struct pressure pressure = {0};
    const uint64_t now_ns = 5000000000;
    assert_true(pressure_is_due(&pressure, now_ns));
    (void)pressure_judge(&pressure, now_ns, &(struct lane_load){0});
    assert_false(pressure_is_due(&pressure, now_ns + PRESSURE_WINDOW_NS - 1));
    assert_true(pressure_is_due(&pressure, now_ns + PRESSURE_WINDOW_NS));
}

static void it_lasts_for_some_windows_from_the_latest_one(void **state)
{
    (void)state;
    static const struct lane_load busy = {1000000, 500000};
    static const struct lane_load idle = {10, 5};
    struct pressure pressure = {0};
    assert_false(pressure_judge(&pressure, 1, &idle));
    assert_true(pressure_judge(&pressure, 2, &busy));
    for (unsigned i = 1; i < PRESSURE_LASTS / 2; i++) {
        assert_true(pressure_judge(&pressure, 3, &idle));
    }
    assert_true(pressure_judge(&pressure, 4, &busy));
    for (unsigned i = 1; i < PRESSURE_LASTS; i++) {
        assert_true(pressure_judge(&pressure, 5, &idle));
    }
    assert_false(pressure_judge(&pressure, 6, &idle));
    assert_false(pressure_judge(&pressure, 7, &idle));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_is_judged_by_sleep_and_by_who_was_busy),
        cmocka_unit_test(sleeps_add_up_and_end_with_their_window),
        cmocka_unit_test(a_window_is_over_after_its_time),
        cmocka_unit_test(it_lasts_for_some_windows_from_the_latest_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
