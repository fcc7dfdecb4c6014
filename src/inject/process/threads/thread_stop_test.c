// SPDX-License-Identifier: MIT
// Tests of thread_stop and target_process: what a stop says when it fails, and memory that the
// kernel gives and takes in parts.
#include "inject/process/threads/thread_stop.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "inject/process/target_reading.h"
#include "inject/process/threads/thread_regs.h"

enum {
    WORD_BYTES = 64
};

static char word[WORD_BYTES] = "what the target has"; // at one address in both processes

// Which calls fail, and how the others behave.
static struct {
    int ptrace_fails_for; // a request; 0: none
    int ptrace_errno;
    size_t part_bytes; // of memory at most in one call; 0: all
    unsigned interruptions;
    bool ends;          // no more bytes come, without an error
    int transfer_errno; // 0: none
    int wait_errno;     // of the first wait; 0: it is the kernel's
} g_kernel;

static int call_wait(int tid, int *status, int options)
{
    if (g_kernel.wait_errno != 0) {
        errno = g_kernel.wait_errno;
        g_kernel.wait_errno = 0;
        return -1;
    }
    return kernel_calls_real.wait(tid, status, options);
}

static long call_ptrace(int request, int tid, void *addr, void *data)
{
    if (g_kernel.ptrace_fails_for != 0 && request == g_kernel.ptrace_fails_for) {
        errno = g_kernel.ptrace_errno;
        return -1;
    }
    return kernel_calls_real.ptrace(request, tid, addr, data);
}

// Return whether a call is to fail, with errno, and cut its length.
static bool is_refused(size_t *len)
{
    if (g_kernel.interruptions > 0) {
        g_kernel.interruptions--;
        errno = EINTR;
        return true;
    }
    *len = g_kernel.part_bytes != 0 && g_kernel.part_bytes < *len ? g_kernel.part_bytes : *len;
    errno = g_kernel.transfer_errno;
    return g_kernel.transfer_errno != 0;
}

static ssize_t call_read_at(int fd, void *into, size_t len, off_t at)
{
    if (g_kernel.ends) {
        errno = EINTR; // of an earlier call
        return 0;
    }
    return is_refused(&len) ? -1 : kernel_calls_real.read_at(fd, into, len, at);
}

static ssize_t call_write_at(int fd, const void *from, size_t len, off_t at)
{
    if (g_kernel.ends) {
        errno = EINTR; // of an earlier call
        return 0;
    }
    return is_refused(&len) ? -1 : kernel_calls_real.write_at(fd, from, len, at);
}

static struct kernel_calls g_calls;
static struct target_process g_target;

static int open_target(void **state)
{
    struct err_info info = {0};
    memset(&g_kernel, 0, sizeof(g_kernel));
    g_calls = kernel_calls_real;
    g_calls.ptrace = call_ptrace;
    g_calls.wait = call_wait;
    g_calls.read_at = call_read_at;
    g_calls.write_at = call_write_at;
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        while (true) {
            (void)pause();
        }
    }
    if (target_process_open(&g_target, pid, &g_calls, &info) != ERR_OK) {
        fail_msg("%s", info.text);
    }
    *state = &g_target;
    return 0;
}

static void end_target(const struct target_process *target)
{
    (void)kill(target->pid, SIGKILL); // it may have ended
    (void)waitpid(target->pid, NULL, 0);
}

static int close_target(void **state)
{
    struct target_process *target = *state;
    end_target(target);
    target_process_close(target);
    return 0;
}

static void memory_is_transferred_in_parts(void **state)
{
    const struct target_process *target = *state;
    static const struct {
        size_t part_bytes;
        unsigned interruptions;
    } cases[] = {{0, 0}, {1, 0}, {7, 0}, {WORD_BYTES - 1, 0}, {WORD_BYTES, 1}, {5, 3}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char wanted[WORD_BYTES];
        char got[WORD_BYTES] = "";
        memset(wanted, 'a' + (int)i, sizeof(wanted));
        g_kernel.part_bytes = cases[i].part_bytes;
        g_kernel.interruptions = cases[i].interruptions;
        assert_int_equal(target_process_write(target, (uintptr_t)word, wanted, WORD_BYTES), ERR_OK);
        g_kernel.interruptions = cases[i].interruptions;
        assert_int_equal(target_process_read(target, (uintptr_t)word, got, WORD_BYTES), ERR_OK);
        assert_memory_equal(got, wanted, WORD_BYTES);
    }
    g_kernel.ends = true;
    assert_int_equal(target_process_write(target, (uintptr_t)word, "x", 1), ERR_NOT_FOUND);
    assert_int_equal(target_process_read(target, (uintptr_t)word, &(char){0}, 1), ERR_NOT_FOUND);
    g_kernel.ends = false;
    g_kernel.transfer_errno = EIO;
    assert_int_equal(target_process_write(target, (uintptr_t)word, "x", 1), ERR_NOT_FOUND);
    assert_int_equal(target_process_read(target, (uintptr_t)word, &(char){0}, 1), ERR_NOT_FOUND);
    g_kernel.transfer_errno = 0;
    assert_int_equal(target_process_read(target, 4096, &(char){0}, 1), ERR_NOT_FOUND);
    end_target(target);
    assert_int_equal(target_process_read(target, (uintptr_t)word, &(char){0}, 1), ERR_NOT_FOUND);
}

static enum err work_well(struct thread_stop *stop, void *context, struct err_info *info)
{
    (void)info;
    *(unsigned *)context += 1;
    assert_int_equal(stop->threads.len, 1);
    return ERR_OK;
}

static enum err ask_again(struct thread_stop *stop, void *context, struct err_info *info)
{
    (void)info;
    stop->try_again = true;
    *(unsigned *)context += 1;
    return ERR_OK;
}

static enum err refuse(struct thread_stop *stop, void *context, struct err_info *info)
{
    (void)stop;
    *(unsigned *)context += 1;
    return err_set(info, ERR_UNSUPPORTED, "a reason");
}

static enum err fail_without_reason(struct thread_stop *stop, void *context, struct err_info *info)
{
    (void)stop;
    (void)info;
    *(unsigned *)context += 1;
    return ERR_LIMIT;
}

// Let no thread start, or let them again: no stack of this size fits an address space.
static void forbid_threads(bool is_forbidden)
{
    static size_t usual_bytes;
    pthread_attr_t attributes;
    assert_int_equal(pthread_getattr_default_np(&attributes), 0);
    if (is_forbidden) {
        assert_int_equal(pthread_attr_getstacksize(&attributes, &usual_bytes), 0);
    }
    assert_int_equal(
        pthread_attr_setstacksize(&attributes, is_forbidden ? (size_t)1 << 47 : usual_bytes), 0);
    assert_int_equal(pthread_setattr_default_np(&attributes), 0);
    assert_int_equal(pthread_attr_destroy(&attributes), 0);
}

static void a_stop_without_a_thread_says_so(void **state)
{
    struct target_process *target = *state;
    struct err_info info = {0};
    unsigned works = 0;
    forbid_threads(true);
    const enum err err =
        thread_stop_run(target, &(struct stop_options){0}, work_well, &works, NULL, &info);
    forbid_threads(false);
    assert_int_equal(err, ERR_IO);
    assert_string_equal(info.text, "cannot start a thread: Resource temporarily unavailable");
    assert_int_equal(works, 0);
    assert_int_equal(
        thread_stop_run(target, &(struct stop_options){0}, work_well, &works, NULL, &info), ERR_OK);
}

static void a_stop_that_fails_says_why(void **state)
{
    struct target_process *target = *state;
    static const struct {
        enum err (*work)(struct thread_stop *stop, void *context, struct err_info *info);
        int ptrace_fails_for;
        int ptrace_errno;
        enum err wanted;
        unsigned works;
        const char *sentence; // a part of it
        int wait_errno;
    } cases[] = {
        {work_well, 0, 0, ERR_OK, 1, "", 0},
        {work_well, 0, 0, ERR_OK, 1, "", EINTR},
        {work_well, 0, 0, ERR_IO, 0, "the kernel does not let cairn stop process", EINVAL},
        {work_well, 0, 0, ERR_NOT_FOUND, 0, "ended", ECHILD},
        {ask_again, 0, 0, ERR_LIMIT, 2, "could not be stopped within 2000 ms in 2 attempts", 0},
        {fail_without_reason, 0, 0, ERR_LIMIT, 2, "within 2000 ms in 2 attempts", 0},
        {refuse, 0, 0, ERR_UNSUPPORTED, 1, "a reason", 0},
        {work_well, PTRACE_SEIZE, EIO, ERR_IO, 0, "the kernel does not let cairn stop process", 0},
        {work_well, PTRACE_SEIZE, ESRCH, ERR_IO, 0, "the kernel does not let cairn stop process",
         0},
        {work_well, PTRACE_INTERRUPT, ESRCH, ERR_IO, 0,
         "the kernel does not let cairn stop process", 0},
        {work_well, THREAD_REGS_READ, ESRCH, ERR_IO, 0,
         "the kernel does not let cairn stop process", 0},
        {work_well, PTRACE_INTERRUPT, EIO, ERR_IO, 0, "the kernel does not let cairn stop process",
         0},
        {work_well, THREAD_REGS_READ, EIO, ERR_IO, 0, "the kernel does not let cairn stop process",
         0},
    };
    const struct stop_options options = {.limit_ms = 2000, .attempts = 2};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err_info info = {0};
        struct stop_report report = {0};
        unsigned works = 0;
        g_kernel.ptrace_fails_for = cases[i].ptrace_fails_for;
        g_kernel.ptrace_errno = cases[i].ptrace_errno;
        g_kernel.wait_errno = cases[i].wait_errno;
        const enum err got =
            thread_stop_run(target, &options, cases[i].work, &works, &report, &info);
        if (got != cases[i].wanted || works != cases[i].works ||
            strstr(info.text, cases[i].sentence) == NULL) {
            fail_msg("%zu: %s, %u: %s", i, err_name(got), works, info.text);
        }
        assert_int_equal(report.attempts, works > 1 ? works : 1);
    }
    unsigned works = 0;
    struct err_info info = {0};
    struct stop_report report = {0};
    g_kernel.ptrace_fails_for = 0;
    assert_int_equal(
        thread_stop_run(target, &(struct stop_options){0}, ask_again, &works, &report, &info),
        ERR_LIMIT);
    assert_non_null(strstr(info.text, "within 100 ms in 10 attempts")); // by default
    assert_int_equal(report.attempts, 10);
    works = 0;
    end_target(target);
    assert_int_equal(thread_stop_run(target, &options, work_well, &works, NULL, &info),
                     ERR_NOT_FOUND);
    assert_int_equal(works, 0);
    assert_non_null(strstr(info.text, "ended"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(memory_is_transferred_in_parts, open_target, close_target),
        cmocka_unit_test_setup_teardown(a_stop_that_fails_says_why, open_target, close_target),
        cmocka_unit_test_setup_teardown(a_stop_without_a_thread_says_so, open_target, close_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
