// SPDX-License-Identifier: MIT
// Searches for processes of a session that have not joined. Other processes of the machine start
// and end meanwhile, and one in the middle of its exec counts as pending, so each case searches
// until it sees the expected answer, up to a deadline.
#include "recorder/processes/pending_processes.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "session/session_env.h"

#define DEADLINE_NS 60000000000u

enum {
    SHORT_MS = 0,
    LONG_MS = 60000,
    LATE_MS = 100, // with 32768 pids
};

static const char session[] = "pending-processes-test";
static const char without_environment[] = "";

// A program of the session that waits until its standard input is closed.
struct waiting_program {
    pid_t pid;
    int input; // its other end
};

static struct waiting_program start(const char *of_session, bool is_preloaded)
{
    int ends[2];
    int started[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pipe(started), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        if (setenv(SESSION_ENV_NAME, of_session, 1) != 0 ||
            (is_preloaded && setenv("LD_PRELOAD", "", 1) != 0) || dup2(ends[0], 0) != 0 ||
            dup2(started[1], 1) != 1 || close(ends[1]) != 0) {
            _exit(1);
        }
        if (of_session == without_environment) {
            execle("/bin/cat", "cat", NULL, (char *[]){NULL});
        }
        execl("/bin/sh", "sh", "-c", "echo; exec cat", NULL);
        _exit(1);
    }
    if (of_session == without_environment) {
        assert_int_equal(write(ends[1], "\n", 1), 1); // which cat repeats
    }
    char line;
    assert_int_equal(read(started[0], &line, 1), 1);
    assert_int_equal(close(ends[0]) + close(started[0]) + close(started[1]), 0);
    return (struct waiting_program){.pid = pid, .input = ends[1]};
}

static struct waiting_program start_program(const char *of_session)
{
    return start(of_session, false);
}

static void end_program(const struct waiting_program *program)
{
    int status = 0;
    assert_int_equal(close(program->input), 0);
    assert_int_equal(waitpid(program->pid, &status, 0), program->pid);
    assert_int_equal(status, 0);
}

// Search as a recorder: in a new child, that starts a program of the session `of_session` (NULL:
// none), looks at the pids every `look_ms` (0: never), and searches for `session`.
static int answer_with_looks(const char *of_session, uint64_t age_ms, uint64_t look_ms)
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct waiting_program program = {0};
        struct pid_order order;
        pid_order_init(&order, 0);
        assert_true(order.late_ms >= LATE_MS);
        order.late_ms = LATE_MS; // as if the kernel had the fewest pids
        for (uint64_t now_ms = look_ms; look_ms > 0 && now_ms < age_ms; now_ms += look_ms) {
            pid_order_look(&order, now_ms);
        }
        if (of_session != NULL) {
            program = start_program(of_session);
        }
        const enum pending_answer answer =
            pending_processes_find(&(struct pending_marks){session, -1}, &order, age_ms);
        if (of_session != NULL) {
            end_program(&program);
        }
        _exit((int)answer);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int answer_of_new_recorder(const char *of_session, uint64_t age_ms)
{
    return answer_with_looks(of_session, age_ms, 0);
}

static void assert_answers_with_looks(const char *of_session,
                                      uint64_t age_ms,
                                      uint64_t look_ms,
                                      enum pending_answer expected)
{
    const uint64_t deadline_ns = clock_monotonic_ns() + DEADLINE_NS;
    int answer = -1;
    do {
        answer = answer_with_looks(of_session, age_ms, look_ms);
    } while (answer != (int)expected && clock_monotonic_ns() < deadline_ns);
    assert_int_equal(answer, (int)expected);
}

static void assert_answers(const char *of_session, uint64_t age_ms, enum pending_answer expected)
{
    assert_answers_with_looks(of_session, age_ms, 0, expected);
}

static void a_program_of_the_session_is_found(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        // always: not "until"
        assert_int_equal(answer_of_new_recorder(session, SHORT_MS), (int)PENDING_SOME);
        assert_int_equal(answer_of_new_recorder(session, LONG_MS), (int)PENDING_SOME);
    }
}

static void an_older_program_of_the_session_is_found_in_a_long_run(void **state)
{
    (void)state;
    const struct waiting_program program = start_program(session);
    assert_int_equal(answer_of_new_recorder(NULL, LONG_MS), (int)PENDING_SOME);
    end_program(&program);
}

static void a_short_run_is_certain_that_there_is_none(void **state)
{
    (void)state;
    assert_answers(NULL, SHORT_MS, PENDING_NONE);
    assert_answers("another session", SHORT_MS, PENDING_NONE);
    assert_answers("pending-processes-test-2", SHORT_MS, PENDING_NONE); // it only begins alike
}

static void a_long_run_is_not_certain(void **state)
{
    (void)state;
    assert_answers(NULL, LONG_MS, PENDING_UNSEEN);
    assert_answers("another session", LONG_MS, PENDING_UNSEEN);
}

static void a_long_run_that_looks_in_time_is_certain(void **state)
{
    (void)state;
    for (uint64_t look_ms = 1; look_ms <= LATE_MS; look_ms += 33) {
        assert_answers_with_looks(NULL, LONG_MS, look_ms, PENDING_NONE);
        assert_answers_with_looks(session, LONG_MS, look_ms, PENDING_SOME);
    }
    assert_answers_with_looks(NULL, LONG_MS, LATE_MS + 1, PENDING_UNSEEN);
    assert_answers_with_looks(session, LONG_MS, LATE_MS + 1, PENDING_SOME);
}

// Its environment stays empty, so it is not about to join.
static void a_program_without_environment_is_not_waited_for(void **state)
{
    (void)state;
    assert_answers(without_environment, SHORT_MS, PENDING_NONE);
    assert_answers(without_environment, LONG_MS, PENDING_UNSEEN);
}

static bool is_over(struct pending_wait *wait, const struct map_u64 *unrecorded, uint64_t now_ms)
{
    struct pending_search *search =
        pending_search_new(wait, &(struct pending_marks){session, -1}, unrecorded, now_ms);
    assert_non_null(search);
    assert_true(pending_wait_is_due(wait, now_ms));
    pending_search_run(search);
    const bool is_over = pending_wait_take(wait, search);
    pending_search_free(search);
    return is_over;
}

// Wait for a program of the session that never joins, and return how many were counted at the end.
static uint64_t count_after_wait(bool is_preloaded, bool is_known)
{
    struct pending_wait wait = {0};
    struct map_u64 unrecorded = {0};
    pid_order_init(&wait.order, 0);
    pending_wait_restart(&wait, 5000);
    const struct waiting_program program = start(session, is_preloaded);
    assert_int_equal(map_u64_put(&unrecorded, is_known ? (uint64_t)program.pid : 1, 1), ERR_OK);
    for (uint64_t now_ms = 5000; now_ms < 7000; now_ms += 333) {
        assert_false(is_over(&wait, &unrecorded, now_ms));
        assert_int_equal(wait.unjoined_count, 0);
    }
    const uint64_t deadline_ns = clock_monotonic_ns() + DEADLINE_NS;
    for (wait.next_check_ms = 0; !is_over(&wait, &unrecorded, 7000); wait.next_check_ms = 0) {
        assert_true(clock_monotonic_ns() < deadline_ns); // others are in the middle of an exec
    }
    map_u64_release(&unrecorded);
    end_program(&program);
    return wait.unjoined_count;
}

// The recorder's patience ends 2 s after the last recorded process. A program that could not have
// joined is in the list of unrecorded programs.
static void who_has_not_joined_at_the_end_of_the_wait_is_counted(void **state)
{
    (void)state;
    static const struct {
        bool is_preloaded;
        bool is_known;
        uint64_t expected;
    } cases[] = {{true, false, 1}, {false, false, 0}, {true, true, 0}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const uint64_t deadline_ns = clock_monotonic_ns() + DEADLINE_NS;
        uint64_t count = 0;
        do { // the program may be in the middle of its exec
            count = count_after_wait(cases[i].is_preloaded, cases[i].is_known);
        } while (count != cases[i].expected && clock_monotonic_ns() < deadline_ns);
        assert_int_equal(count, cases[i].expected);
    }
}

// Start a program of the session that does not join, and does not sleep.
static pid_t start_busy(void)
{
    int started[2];
    char line;
    assert_int_equal(pipe(started), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        if (setenv(SESSION_ENV_NAME, session, 1) == 0 && setenv("LD_PRELOAD", "", 1) == 0 &&
            dup2(started[1], 1) == 1) {
            execl("/bin/sh", "sh", "-c", "echo; while :; do :; done", NULL);
        }
        _exit(1);
    }
    assert_int_equal(read(started[0], &line, 1), 1);
    assert_int_equal(close(started[0]) + close(started[1]), 0);
    return pid;
}

// It waits for its processor: 10 s, and then counts as one that has not joined.
static void who_is_under_way_is_waited_for_longer(void **state)
{
    (void)state;
    struct pending_wait wait = {0};
    struct map_u64 unrecorded = {0};
    pid_order_init(&wait.order, 0);
    pending_wait_restart(&wait, 5000);
    const pid_t program = start_busy();
    for (uint64_t now_ms = 5000; now_ms < 15000; now_ms += 999) {
        assert_false(is_over(&wait, &unrecorded, now_ms));
        assert_int_equal(wait.unjoined_count, 0);
    }
    assert_true(is_over(&wait, &unrecorded, 15000));
    assert_int_equal(wait.unjoined_count, 1);
    assert_int_equal(kill(program, SIGKILL), 0);
    assert_int_equal(waitpid(program, NULL, 0), program);
    map_u64_release(&unrecorded);
}

// A process has not let its environment be read.
static void a_search_without_end_ends_the_wait(void **state)
{
    (void)state;
    struct pending_wait wait = {0};
    pending_wait_restart(&wait, 5000);
    assert_true(pending_wait_take(&wait, NULL));
    assert_int_equal(wait.unjoined_count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_of_the_session_is_found),
        cmocka_unit_test(an_older_program_of_the_session_is_found_in_a_long_run),
        cmocka_unit_test(a_short_run_is_certain_that_there_is_none),
        cmocka_unit_test(a_long_run_is_not_certain),
        cmocka_unit_test(a_long_run_that_looks_in_time_is_certain),
        cmocka_unit_test(a_program_without_environment_is_not_waited_for),
        cmocka_unit_test(a_search_without_end_ends_the_wait),
        cmocka_unit_test(who_has_not_joined_at_the_end_of_the_wait_is_counted),
        cmocka_unit_test(who_is_under_way_is_waited_for_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
