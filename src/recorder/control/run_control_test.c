// SPDX-License-Identifier: MIT
// Tests of run_control: requests in an order that is a table, the marks and the stops they leave,
// and when a recording is whole.
#include "recorder/control/run_control.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"

static uint64_t read_clock(void *context)
{
    return (*(uint64_t *)context)++;
}

// At 10, 20, ... ms: < starts, > stops, s lets hooks choose blocks, m sets a mark, M one without
// text, . lets time pass.
// `refused` has an x for each request that is refused.
static const struct request_case {
    struct run_control_options options;
    const char *requests;
    const char *refused;
    bool is_whole; // at the end
    bool is_over;
    size_t marks;
    enum session_recording recording;
} cases[] = {
    {{0}, "", "", true, false, 0, SESSION_RECORD_ALL},
    {{0}, "mm.", "   ", true, false, 2, SESSION_RECORD_ALL},
    {{0}, "M<", "xx", true, false, 0, SESSION_RECORD_ALL},
    {{0}, ">>", " x", false, false, 1, SESSION_RECORD_FREES},
    {{0}, "m>m<m", "     ", false, false, 5, SESSION_RECORD_ALL},
    {{0}, "ss", "  ", true, false, 0, SESSION_RECORD_SAMPLE},
    {{0}, "s<>>", " x x", false, false, 1, SESSION_RECORD_SAMPLE_FREES},
    {{0}, ">s", "  ", false, false, 1, SESSION_RECORD_SAMPLE_FREES},
    {{0}, ">s<<", "   x", false, false, 2, SESSION_RECORD_SAMPLE},
    {{.is_paused = true}, "s", " ", false, false, 1, SESSION_RECORD_NOTHING},
    {{.is_paused = true}, "s<", "  ", false, false, 2, SESSION_RECORD_SAMPLE},
    {{.is_paused = true}, "m.", "  ", false, false, 2, SESSION_RECORD_NOTHING},
    {{.is_paused = true}, "<<", " x", false, false, 2, SESSION_RECORD_ALL},
    {{.delay_ms = 25}, "..", "  ", false, false, 1, SESSION_RECORD_NOTHING},
    {{.delay_ms = 25}, "...", "   ", false, false, 2, SESSION_RECORD_ALL},
    {{.delay_ms = 30}, "...", "   ", false, false, 2, SESSION_RECORD_ALL},
    {{.delay_ms = 25, .is_paused = true}, "...", "   ", false, false, 1, SESSION_RECORD_NOTHING},
    {{.duration_ms = 31}, "...", "   ", true, false, 0, SESSION_RECORD_ALL},
    {{.duration_ms = 30}, "...", "   ", true, true, 0, SESSION_RECORD_ALL},
    {{.duration_ms = 20, .is_paused = true}, "..<.", "    ", false, false, 2, SESSION_RECORD_ALL},
    {{.duration_ms = 20, .is_paused = true}, "..<..", "     ", false, true, 2, SESSION_RECORD_ALL},
};

static enum err
send_request(struct run_control *control, char what, uint64_t now_ms, struct err_info *info)
{
    uint64_t clock_ms = now_ms;
    const bool is_new = !control->samples;
    switch (what) {
    case '<':
        return run_control_start(control, now_ms, info);
    case '>':
        return run_control_stop(control, read_clock, &clock_ms, info);
    case 's':
        assert_int_equal(run_control_sample(control), is_new);
        return ERR_OK;
    case 'm':
        return run_control_mark(control, now_ms, "here", info);
    case 'M':
        return run_control_mark(control, now_ms, "", info);
    default:
        return ERR_OK;
    }
}

static void play(const struct request_case *c)
{
    static struct session_header session;
    CLEANUP(aggregator_release) struct aggregator aggregator = {0};
    struct run_control control;
    uint64_t now_ms = 0;
    assert_int_equal(aggregator_init(&aggregator), ERR_OK);
    assert_int_equal(run_control_init(&control, &c->options, &session, &aggregator), ERR_OK);
    for (size_t i = 0; c->requests[i] != '\0'; i++) {
        struct err_info info = {0};
        now_ms = (i + 1) * 10;
        const bool is_refused = c->refused[i] == 'x';
        assert_int_equal(send_request(&control, c->requests[i], now_ms, &info),
                         is_refused ? ERR_INVALID : ERR_OK);
        assert_int_equal(info.text[0] != '\0', is_refused);
        assert_int_equal(run_control_tick(&control, now_ms), ERR_OK);
    }
    assert_int_equal(run_control_is_whole(&control), c->is_whole);
    assert_int_equal(run_control_is_over(&control, now_ms), c->is_over);
    assert_int_equal(aggregator.marks.marks.len, c->marks);
    assert_int_equal(atomic_load(&session.recording), c->recording);
}

static void requests_in_any_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("%zu: '%s'\n", i, cases[i].requests);
        play(&cases[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
