// SPDX-License-Identifier: MIT
// attach_refusal_test: on machines without a way in, attaching is refused with a sentence that says
// what to do. The refusals are the same code everywhere, so they are tested everywhere.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "attach/attach.h"

enum {
    PID = 4711
};

static void a_running_process_is_refused_with_a_sentence(void **state)
{
    (void)state;
    static const char sentence[] = "cairn cannot attach to process 4711 on this machine; start the "
                                   "program with 'cairn PROGRAM'";
    const struct attach_options options = {0};
    struct attach attach;
    struct err_info info = {0};
    assert_false(attach_is_possible());
    assert_int_equal(attach_open(&attach, PID, &options, &info), ERR_UNSUPPORTED);
    assert_string_equal(info.text, sentence);
    info = (struct err_info){0};
    assert_int_equal(attach_late_copy(&attach, PID, &options, &info), ERR_UNSUPPORTED);
    assert_string_equal(info.text, sentence);
    attach_release(&attach);
    attach_release(&attach);
}

static void nothing_else_is_done(void **state)
{
    (void)state;
    const struct attach_options options = {0};
    struct attach attach = {0};
    struct fresh_start child = {.pid = PID};
    struct err_info info = {0};
    assert_int_equal(attach_begin(&attach, -1, &info), ERR_UNSUPPORTED);
    assert_int_equal(attach_late(&attach, &options, &info), ERR_UNSUPPORTED);
    assert_int_equal(attach_end(&attach, &info), ERR_OK);
    assert_int_equal(attach_end_copy(PID, &info), ERR_OK);
    assert_int_equal(attach_hold_begin(&child, &info), ERR_UNSUPPORTED);
    assert_string_equal(info.text, "cairn cannot hold process 4711 on this machine");
    assert_int_equal(attach_hold_run(&child, &info), ERR_UNSUPPORTED);
    assert_false(attach_hold_has_ended(&child));
    attach_hold_release(&child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_running_process_is_refused_with_a_sentence),
        cmocka_unit_test(nothing_else_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
