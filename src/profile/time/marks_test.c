// SPDX-License-Identifier: MIT
// Tests of marks: the names of the kinds, and how long recording was stopped.
#include "profile/time/marks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"

static void each_kind_has_a_name(void **state)
{
    (void)state;
    static const char *const names[] = {"mark", "start", "stop", "phase", "unknown", "unknown"};
    static const uint32_t kinds[] = {REC_MARK_USER,  REC_MARK_START,     REC_MARK_STOP,
                                     REC_MARK_PHASE, REC_MARK_PHASE + 1, UINT32_MAX};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        assert_string_equal(mark_kind_name(kinds[i]), names[i]);
    }
}

static void stopped_time_is_between_stop_and_start(void **state)
{
    (void)state;
    static const struct {
        const char *kinds; // s: stop, g: start, u: the user's, p: phase
        uint64_t times_ms[6];
        uint64_t runtime_ms;
        uint64_t stopped_ms;
    } cases[] = {
        {"", {0}, 100, 0},
        {"g", {10}, 100, 0},
        {"s", {10}, 100, 90},
        {"s", {100}, 100, 0},
        {"s", {120}, 100, 0}, // the run time is that of the last checkpoint
        {"sg", {10, 30}, 100, 20},
        {"sgsg", {10, 30, 50, 90}, 100, 60},
        {"ssgg", {10, 20, 50, 90}, 100, 40},
        {"supg", {10, 20, 30, 50}, 100, 40},
        {"sgs", {10, 30, 50}, 100, 70},
        {"gsgsup", {5, 10, 12, 50, 60, 70}, 100, 52},
    };
    static const uint32_t kinds[] = {['s'] = REC_MARK_STOP,
                                     ['g'] = REC_MARK_START,
                                     ['u'] = REC_MARK_USER,
                                     ['p'] = REC_MARK_PHASE};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct rec_mark marks[6] = {0};
        const size_t count = strlen(cases[i].kinds);
        for (size_t k = 0; k < count; k++) {
            marks[k].kind = kinds[(unsigned char)cases[i].kinds[k]];
            marks[k].time_ms = cases[i].times_ms[k];
        }
        const struct recording recording = {
            .meta.runtime_ms = cases[i].runtime_ms, .marks = marks, .mark_count = count};
        print_message("'%s'\n", cases[i].kinds);
        assert_int_equal(marks_stopped_ms(&recording), cases[i].stopped_ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_has_a_name),
        cmocka_unit_test(stopped_time_is_between_stop_and_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
