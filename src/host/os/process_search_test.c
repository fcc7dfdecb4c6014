// SPDX-License-Identifier: MIT
#include "host/os/process_search.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"

// A child that has the name and waits.
static pid_t begin_child(const char *name)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); // not left behind by a test that fails
        (void)prctl(PR_SET_NAME, name, 0, 0, 0);
        (void)!write(ready[1], "x", 1);
        for (;;) {
            (void)pause();
        }
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    return child;
}

static bool has(const struct u32_vec *found, pid_t pid)
{
    for (size_t i = 0; i < found->len; i++) {
        if (found->items[i] == (uint32_t)pid) {
            return true;
        }
    }
    return false;
}

static void both_names_are_found_and_the_dead_are_not(void **state)
{
    (void)state;
    CLEANUP(u32_vec_release) struct u32_vec by_command = {0};
    CLEANUP(u32_vec_release) struct u32_vec by_file = {0};
    CLEANUP(u32_vec_release) struct u32_vec after = {0};
    char path[4096] = "";
    assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
    const pid_t child = begin_child("a (strange) 1");

    assert_int_equal(process_search("a (strange) 1", &by_command, NULL), ERR_OK);
    assert_int_equal(by_command.len, 1);
    assert_int_equal(by_command.items[0], child);
    assert_int_equal(process_search(path_file_name(path), &by_file, NULL), ERR_OK);
    assert_true(has(&by_file, child));
    assert_false(has(&by_file, getpid()));

    assert_int_equal(kill(child, SIGKILL), 0);
    siginfo_t end;
    assert_int_equal(waitid(P_PID, (id_t)child, &end, WEXITED | WNOWAIT), 0); // a zombie now
    assert_int_equal(process_search("a (strange) 1", &after, NULL), ERR_OK);
    assert_int_equal(after.len, 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(process_search("", &after, NULL), ERR_OK);
    assert_int_equal(after.len, 0);
}

// The process exists, whatever this one lacks to see it.
static void a_lack_of_descriptors_is_no_lack_of_processes(void **state)
{
    (void)state;
    CLEANUP(u32_vec_release) struct u32_vec found = {0};
    struct err_info info = {0};
    const pid_t child = begin_child("a lack");
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int free_fd = dup(STDIN_FILENO);
    assert_true(free_fd >= 0);
    close(free_fd);
    for (int room = 0; room <= 1; room++) { // for /proc, for a file in it
        const struct rlimit few = {.rlim_cur = (rlim_t)(free_fd + room),
                                   .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        const enum err err = process_search("a lack", &found, &info);
        const enum err children = process_search_children(getpid(), &found);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(err, ERR_IO);
        assert_int_equal(info.errno_value, EMFILE);
        assert_int_equal(children, room == 0 ? ERR_IO : ERR_OK);
        assert_int_equal(found.len, room); // the child
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void *wait_for_ever(void *fd)
{
    const pid_t task = gettid();
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); // not left behind by a test that fails
    (void)!write(*(const int *)fd, &task, sizeof(task));
    while (pause() != 0) { // never 0
    }
    return NULL;
}

static char state_of(pid_t pid)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    assert_true(proc_file_read(pid, "stat", 4096, &text));
    return strrchr(strbuf_text(&text), ')')[2];
}

static bool has_thread(pid_t process, pid_t thread)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)process, (int)thread); // fits
    return access(path, F_OK) == 0;
}

static void a_process_without_its_first_thread_is_found_by_its_file(void **state)
{
    (void)state;
    CLEANUP(u32_vec_release) struct u32_vec found = {0};
    char path[4096] = "";
    int ready[2];
    pid_t task = 0;
    assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        (void)pthread_create(&thread, NULL, wait_for_ever, &ready[1]); // else the parent reads EOF
        (void)prctl(PR_SET_NAME, "first thread", 0, 0, 0);
        (void)syscall(SYS_exit, 0); // of this thread alone
    }
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &task, sizeof(task)), sizeof(task));
    (void)close(ready[0]);
    while (state_of(child) != 'Z') {
        (void)sched_yield();
    }
    const pid_t living = proc_file_living(child); // with a sanitizer perhaps a thread of its own
    assert_int_not_equal(living, child);
    assert_true(has_thread(child, living) && has_thread(child, task));
    assert_int_equal(proc_file_living(getpid()), getpid());
    assert_int_equal(process_search(path_file_name(path), &found, NULL), ERR_OK);
    assert_true(has(&found, child));
    assert_int_equal(kill(child, SIGKILL), 0);
    siginfo_t end;
    assert_int_equal(waitid(P_PID, (id_t)child, &end, WEXITED | WNOWAIT), 0); // a zombie now
    assert_int_equal(proc_file_living(child), child);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(proc_file_living(child), child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_without_its_first_thread_is_found_by_its_file),
        cmocka_unit_test(both_names_are_found_and_the_dead_are_not),
        cmocka_unit_test(a_lack_of_descriptors_is_no_lack_of_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
