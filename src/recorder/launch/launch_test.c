// SPDX-License-Identifier: MIT
// Tests of launch: programs that start, with their descriptor, and programs that do not.
#include "recorder/launch/launch.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/open_files.h"
#include "host/os/file.h"
#include "session/session_env.h"

enum {
    DEADLINE_MS = 60000
};

static struct launch_signals g_signals;
static int g_signal_fd = -1;

static int take_signals(void **state)
{
    struct err_info info = {0};
    (void)state;
    return launch_take_signals(&g_signals, &g_signal_fd, &info);
}

static int restore_signals(void **state)
{
    (void)state;
    launch_restore_signals(&g_signals);
    fd_closep(&g_signal_fd);
    return 0;
}

// A hold of a program that does nothing but count, or fails.
struct counted {
    unsigned begun;
    unsigned run;
    enum err begin_err;
};

static enum err count_begin(void *context, pid_t pid, struct err_info *info)
{
    struct counted *counted = context;
    counted->begun++;
    assert_int_equal(kill(pid, 0), 0);
    return counted->begin_err == ERR_OK ? ERR_OK : err_set(info, counted->begin_err, "held");
}

static enum err count_run(void *context, struct err_info *info)
{
    (void)info;
    ((struct counted *)context)->run++;
    return ERR_OK;
}

static void a_program_has_a_descriptor_that_says_when_it_ends(void **state)
{
    (void)state;
    static const char *const argv[] = {"its own name", "-c",
                                       "test \"$0\" = 'its own name' && exit 7"};
    for (int is_held = 0; is_held < 2; is_held++) {
        struct counted counted = {0};
        const struct launch_hold hold = {
            .context = &counted, .begin = count_begin, .run = count_run};
        char *arguments[] = {(char *)(uintptr_t)argv[0], (char *)(uintptr_t)argv[1],
                             (char *)(uintptr_t)argv[2], NULL};
        const struct launch_plan plan = {.path = "/bin/sh",
                                         .argv = arguments,
                                         .signals = &g_signals,
                                         .hold = is_held != 0 ? &hold : NULL};
        struct launched launched = {.pidfd = -1};
        struct err_info info = {0};
        int status = 0;
        assert_int_equal(launch_program(&plan, &launched, &info), ERR_OK);
        assert_true(launched.pid > 0);
        assert_true(launched.pidfd >= 0);
        struct pollfd end = {.fd = launched.pidfd, .events = POLLIN};
        assert_int_equal(poll(&end, 1, DEADLINE_MS), 1);
        assert_int_equal(waitpid(launched.pid, &status, 0), launched.pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 7);
        assert_int_equal(counted.begun, is_held);
        assert_int_equal(counted.run, is_held);
        fd_closep(&launched.pidfd);
    }
}

// Run a script in /bin/sh, as the plan says otherwise; return its wait status.
static int status_of(struct launch_plan plan, const char *script)
{
    char option[] = "-c";
    char *arguments[] = {(char *)(uintptr_t)plan.path, option, (char *)(uintptr_t)script, NULL};
    struct launched launched = {.pidfd = -1};
    struct err_info info = {0};
    int status = -1;
    plan.argv = arguments;
    plan.signals = &g_signals;
    assert_int_equal(launch_program(&plan, &launched, &info), ERR_OK);
    assert_int_equal(waitpid(launched.pid, &status, 0), launched.pid);
    fd_closep(&launched.pidfd);
    return status;
}

// Of a variable that the shell would hide the second value, the environment has it once, and names
// that only begin alike are others.
static void a_program_gets_our_two_variables_and_keeps_the_others(void **state)
{
    (void)state;
    static const struct {
        const char *before; // LD_PRELOAD; NULL: not set
        const char *wanted;
    } cases[] = {{NULL, "libc.so.6"}, {"", "libc.so.6"}, {"libm.so.6", "libc.so.6:libm.so.6"}};
    static const char check[] =
        "count() { tr '\\0' '\\n' </proc/$$/environ | grep -c \"^$1=\"; }\n"
        "test \"$LD_PRELOAD\" = \"$WANTED\" || exit 1\n"
        "test \"$" SESSION_ENV_NAME "\" = 'a session' || exit 2\n"
        "test \"$LD_PRELOADED $LD_PRE $X" SESSION_ENV_NAME "\" = '1 2 3' || exit 3\n"
        "test $(count LD_PRELOAD) = 1 || exit 4\n"
        "test $(count " SESSION_ENV_NAME ") = 1 || exit 5\n";
    assert_int_equal(setenv("LD_PRELOADED", "1", 1), 0);
    assert_int_equal(setenv("LD_PRE", "2", 1), 0);
    assert_int_equal(setenv("X" SESSION_ENV_NAME, "3", 1), 0);
    assert_int_equal(setenv(SESSION_ENV_NAME, "another", 1), 0);
    const char *const set = getenv("LD_PRELOAD");
    char *const kept = set != NULL ? strdup(set) : NULL;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(setenv("WANTED", cases[i].wanted, 1), 0);
        assert_int_equal(cases[i].before != NULL ? setenv("LD_PRELOAD", cases[i].before, 1)
                                                 : unsetenv("LD_PRELOAD"),
                         0);
        const int status = status_of((struct launch_plan){.path = "/bin/sh",
                                                          .preload_library = "libc.so.6",
                                                          .session = "a session"},
                                     check);
        if (status != 0) {
            fail_msg("LD_PRELOAD=%s: exit %d", cases[i].wanted, WEXITSTATUS(status));
        }
    }
    assert_int_equal(unsetenv("LD_PRELOAD"), 0);
    // Without a library of ours nothing is changed.
    assert_int_equal(status_of((struct launch_plan){.path = "/bin/sh"},
                               "test \"$LD_PRELOAD$" SESSION_ENV_NAME "\" = another"),
                     0);
    if (kept != NULL) {
        assert_int_equal(setenv("LD_PRELOAD", kept, 1), 0);
    }
    free(kept);
    assert_int_equal(unsetenv(SESSION_ENV_NAME), 0);
}

static const struct {
    int number;
    bool is_ignored;
    bool is_heard;
} signals_taken[] = {{SIGINT, true, true},   {SIGQUIT, true, true},  {SIGTERM, false, true},
                     {SIGHUP, false, true},  {SIGCHLD, false, true}, {SIGXFSZ, true, false},
                     {SIGUSR1, false, false}};

static bool is_ignored(int number)
{
    struct sigaction action;
    assert_int_equal(sigaction(number, NULL, &action), 0);
    return action.sa_handler == SIG_IGN;
}

static bool is_blocked(int number)
{
    sigset_t blocked;
    assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &blocked), 0);
    return sigismember(&blocked, number) == 1;
}

static void signals_are_heard_and_given_back(void **state)
{
    (void)state;
    struct launch_signals saved;
    struct err_info info = {0};
    int fd = -1;
    for (size_t i = 0; i < ARRAY_LEN(signals_taken) - 1; i++) { // the contrary of what is taken
        assert_true(signal(signals_taken[i].number,
                           signals_taken[i].is_ignored ? SIG_DFL : SIG_IGN) != SIG_ERR);
    }
    assert_int_equal(launch_take_signals(&saved, &fd, &info), ERR_OK);
    for (size_t i = 0; i < ARRAY_LEN(signals_taken); i++) {
        assert_int_equal(is_ignored(signals_taken[i].number), signals_taken[i].is_ignored);
        assert_int_equal(is_blocked(signals_taken[i].number), signals_taken[i].is_heard);
    }
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    for (size_t i = 0; i < ARRAY_LEN(signals_taken); i++) {
        struct signalfd_siginfo heard;
        const int number = signals_taken[i].number;
        if (signals_taken[i].is_heard && !signals_taken[i].is_ignored) {
            assert_int_equal(raise(number), 0);
            assert_int_equal(read(fd, &heard, sizeof(heard)), sizeof(heard));
            assert_int_equal(heard.ssi_signo, number);
        }
    }
    launch_restore_signals(&saved);
    for (size_t i = 0; i < ARRAY_LEN(signals_taken) - 1; i++) {
        assert_int_equal(is_ignored(signals_taken[i].number), !signals_taken[i].is_ignored);
        assert_false(is_blocked(signals_taken[i].number));
        assert_true(signal(signals_taken[i].number, SIG_DFL) != SIG_ERR);
    }
    fd_closep(&fd);
}

// The program must end by what would end it without us.
static void a_program_has_the_signals_of_our_start(void **state)
{
    (void)state;
    struct counted counted = {0};
    const struct launch_hold hold = {.context = &counted, .begin = count_begin, .run = count_run};
    for (int is_held = 0; is_held < 2; is_held++) {
        const struct launch_plan plan = {.path = "/bin/sh", .hold = is_held != 0 ? &hold : NULL};
        const int by_int = status_of(plan, "kill -INT $$");
        const int by_term = status_of(plan, "kill -TERM $$");
        assert_true(WIFSIGNALED(by_int));
        assert_int_equal(WTERMSIG(by_int), SIGINT);
        assert_true(WIFSIGNALED(by_term));
        assert_int_equal(WTERMSIG(by_term), SIGTERM);
    }
}

static void what_does_not_start_says_why_and_leaves_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        bool is_held;
        enum err hold_err;
        enum err wanted;
        const char *says;
    } cases[] = {
        {"/nonexistent/program", false, ERR_OK, ERR_NOT_FOUND,
         "cannot run '/nonexistent/program': No such file or directory"},
        {"/nonexistent/program", true, ERR_OK, ERR_NOT_FOUND,
         "cannot run '/nonexistent/program': No such file or directory"},
        {"/etc/passwd", false, ERR_OK, ERR_PERMISSION, // not executable
         "cannot run '/etc/passwd': Permission denied"},
        {"/tmp", false, ERR_OK, ERR_PERMISSION, "cannot run '/tmp': Permission denied"},
        {"/bin/sh", true, ERR_LIMIT, ERR_LIMIT, "held"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct counted counted = {.begin_err = cases[i].hold_err};
        const struct launch_hold hold = {
            .context = &counted, .begin = count_begin, .run = count_run};
        char name[] = "name";
        char *arguments[] = {name, NULL};
        const struct launch_plan plan = {.path = cases[i].path,
                                         .argv = arguments,
                                         .signals = &g_signals,
                                         .hold = cases[i].is_held ? &hold : NULL};
        struct launched launched = {.pid = -1, .pidfd = -1};
        struct err_info info = {0};
        assert_int_equal(launch_program(&plan, &launched, &info), cases[i].wanted);
        assert_int_equal(launched.pid, -1);
        assert_string_equal(info.text, cases[i].says);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); // no child is left
        assert_int_equal(counted.run, cases[i].is_held && cases[i].hold_err == ERR_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_program_has_a_descriptor_that_says_when_it_ends,
                                        take_signals, restore_signals),
        cmocka_unit_test_setup_teardown(a_program_gets_our_two_variables_and_keeps_the_others,
                                        take_signals, restore_signals),
        cmocka_unit_test(signals_are_heard_and_given_back),
        cmocka_unit_test_setup_teardown(a_program_has_the_signals_of_our_start, take_signals,
                                        restore_signals),
        cmocka_unit_test_setup_teardown(what_does_not_start_says_why_and_leaves_nothing,
                                        take_signals, restore_signals),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
