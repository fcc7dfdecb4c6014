// SPDX-License-Identifier: MIT
// Tests of launch: programs that start, with their descriptor, and programs that do not.
#include "recorder/launch/launch.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/open_files.h"
#include "host/os/file.h"

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

static void what_does_not_start_says_why_and_leaves_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        enum err hold_err; // ERR_OK: not held
        enum err wanted;
    } cases[] = {
        {"/nonexistent/program", ERR_OK, ERR_NOT_FOUND},
        {"/etc/passwd", ERR_OK, ERR_PERMISSION}, // not executable
        {"/tmp", ERR_OK, ERR_PERMISSION},
        {"/bin/sh", ERR_LIMIT, ERR_LIMIT},
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
                                         .hold = cases[i].hold_err != ERR_OK ? &hold : NULL};
        struct launched launched = {.pid = -1, .pidfd = -1};
        struct err_info info = {0};
        assert_int_equal(launch_program(&plan, &launched, &info), cases[i].wanted);
        assert_int_equal(launched.pid, -1);
        assert_true(info.text[0] != '\0');
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); // no child is left
        assert_int_equal(counted.run, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_program_has_a_descriptor_that_says_when_it_ends,
                                        take_signals, restore_signals),
        cmocka_unit_test_setup_teardown(what_does_not_start_says_why_and_leaves_nothing,
                                        take_signals, restore_signals),
    };
    return cmocka_run_group_tests(tests, open_files_note, open_files_expect);
}
