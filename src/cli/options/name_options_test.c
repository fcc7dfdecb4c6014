// SPDX-License-Identifier: MIT
// name_options: Ctrl-C while debuginfod is asked. The thread that asks blocks all signals, as this
// test's only thread does after name_places_init, so it shows each state of a signal under way.
#include "cli/options/name_options.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void set_blocked(int how)
{
    sigset_t interrupts;
    (void)sigemptyset(&interrupts);
    (void)sigaddset(&interrupts, SIGINT);
    assert_int_equal(pthread_sigmask(how, &interrupts, NULL), 0);
}

static bool may_go_on(struct name_places *places)
{
    return places->servers.go_on(places->servers.context, 0, 0);
}

static void assert_usual_action(void)
{
    struct sigaction now;
    assert_int_equal(sigaction(SIGINT, NULL, &now), 0);
    assert_ptr_equal(now.sa_handler, SIG_DFL);
}

static void open_places(struct name_places *places)
{
    struct err_info info = {0};
    assert_int_equal(setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1/", 1), 0);
    assert_int_equal(name_places_init(places, NULL, &info), ERR_OK);
    assert_non_null(places->servers.go_on);
}

// Else the signal would meet the restored action, and end the command.
static void a_request_ends_when_the_handler_has_run_and_not_before(void **state)
{
    (void)state;
    struct name_places places;
    open_places(&places);
    assert_true(may_go_on(&places));
    set_blocked(SIG_BLOCK);
    assert_int_equal(kill(getpid(), SIGINT), 0);
    assert_true(may_go_on(&places)); // pending, and on its way
    set_blocked(SIG_UNBLOCK);        // it arrives
    assert_false(may_go_on(&places));
    places.servers.end_request(places.servers.context, DEBUGINFOD_INTERRUPTED);
    assert_usual_action();
    name_places_release(&places);
}

static void a_command_that_waits_for_signals_keeps_the_signal(void **state)
{
    (void)state;
    struct name_places places;
    sigset_t interrupts;
    int number = 0;
    (void)sigemptyset(&interrupts);
    (void)sigaddset(&interrupts, SIGINT);
    set_blocked(SIG_BLOCK);
    open_places(&places);
    assert_true(may_go_on(&places));
    assert_int_equal(kill(getpid(), SIGINT), 0);
    assert_false(may_go_on(&places));
    places.servers.end_request(places.servers.context, DEBUGINFOD_INTERRUPTED);
    assert_int_equal(sigwait(&interrupts, &number), 0);
    assert_int_equal(number, SIGINT);
    set_blocked(SIG_UNBLOCK);
    assert_usual_action();
    name_places_release(&places);
}

static void an_answer_restores_the_usual_action(void **state)
{
    (void)state;
    struct name_places places;
    open_places(&places);
    assert_true(may_go_on(&places));
    places.servers.end_request(places.servers.context, DEBUGINFOD_ANSWERED);
    assert_usual_action();
    name_places_release(&places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_ends_when_the_handler_has_run_and_not_before),
        cmocka_unit_test(a_command_that_waits_for_signals_keeps_the_signal),
        cmocka_unit_test(an_answer_restores_the_usual_action),
    };
    (void)signal(SIGINT, SIG_DFL); // a script that starts the tests with & has it ignored
    return cmocka_run_group_tests(tests, NULL, NULL);
}
