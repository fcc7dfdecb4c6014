// SPDX-License-Identifier: MIT
#include "attach/executed_path.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "inject/process/target_reading.h"

#define PROGRAM "/bin/cat"

// Start PROGRAM by `name`, and wait until its main runs: posix_spawn returns in the midst of the
// exec, before the kernel has noted the name. *out_input is to be closed.
static pid_t start_by(const char *name, int *out_input)
{
    char own_name[] = "another name";
    char *const arguments[] = {own_name, NULL};
    char *const environment[] = {NULL};
    int input[2];
    int output[2];
    char byte = 'x';
    pid_t pid = 0;
    posix_spawn_file_actions_t actions;
    assert_int_equal(pipe2(input, O_CLOEXEC), 0);
    assert_int_equal(pipe2(output, O_CLOEXEC), 0);
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO), 0);
    assert_int_equal(posix_spawn(&pid, name, &actions, NULL, arguments, environment), 0);
    assert_int_equal(posix_spawn_file_actions_destroy(&actions), 0);
    assert_int_equal(close(input[0]), 0);
    assert_int_equal(close(output[1]), 0);
    assert_int_equal(write(input[1], &byte, 1), 1);
    assert_int_equal(read(output[0], &byte, 1), 1);
    assert_int_equal(close(output[0]), 0);
    *out_input = input[1];
    return pid;
}

// Assert which path a process has that was executed by `name`. Afterwards, `removed` is missing.
static void check_path_of(const char *name, const char *removed, const char *want)
{
    struct target_process target = {0};
    CLEANUP(strbuf_release) struct strbuf got = {0};
    int input = -1;
    const pid_t pid = start_by(name, &input);
    assert_int_equal(removed != NULL ? unlink(removed) : 0, 0);
    const enum err opened = target_process_open(&target, pid, &kernel_calls_real, NULL);
    const enum err problem = opened == ERR_OK ? executed_path_append(&target, &got) : opened;
    target_process_close(&target);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(close(input), 0);
    assert_int_equal(problem, ERR_OK);
    assert_string_equal(strbuf_text(&got), want);
}

static void a_process_has_the_name_that_it_was_executed_by(void **state)
{
    (void)state;
    char folder[] = "/tmp/cairn-executed-path-XXXXXX";
    char own[PATH_MAX];
    char link[PATH_MAX];
    assert_non_null(realpath(PROGRAM, own));
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_non_null(realpath(".", link));
    strcat(link, "/link"); // NOLINT: far shorter
    assert_int_equal(symlink(PROGRAM, "link"), 0);
    check_path_of(own, NULL, own);
    check_path_of(link, NULL, link);
    check_path_of("link", NULL, link);
    check_path_of("./link", NULL, link);
    check_path_of("../../proc/self/cwd/link", NULL, own);
    check_path_of(link, link, own);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_has_the_name_that_it_was_executed_by),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
