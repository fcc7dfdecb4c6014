// SPDX-License-Identifier: MIT
// fresh_stop: a program that is looked at when its loader has found itself and has not begun to map
// libraries. The loader's state is then the same as at its end.
#include "inject/process/threads/fresh_stop.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"

enum {
    STEPS_MAX = 5000000, // many more than a loader needs
};

static enum {
    BEFORE_EXEC,
    AT_EXEC,   // the next continuation goes to the moment
    IN_MOMENT, // it is stopped there, and not as an interruption stops it
    BEYOND,
} phase;

static uint64_t loader_of(int pid)
{
    char path[64];
    Elf64_auxv_t entries[64] = {0};
    (void)snprintf(path, sizeof(path), "/proc/%d/auxv", pid); // fits
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(read(fd, entries, sizeof(entries)) > 0);
    assert_int_equal(close(fd), 0);
    for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
        if (entries[i].a_type == AT_BASE) {
            return entries[i].a_un.a_val;
        }
    }
    fail_msg("process %d has no loader", pid);
    return 0;
}

// The loader's state in a program with the same loader as this one.
static uint64_t state_of(int pid)
{
    const ElfW(Dyn) *entry = _DYNAMIC;
    while (entry->d_tag != DT_DEBUG) {
        assert_int_not_equal(entry->d_tag, DT_NULL);
        entry++;
    }
    return entry->d_un.d_ptr - getauxval(AT_BASE) + loader_of(pid);
}

static int word_at(int pid, uint64_t addr)
{
    errno = 0;
    const long word = ptrace(PTRACE_PEEKDATA, pid, (void *)(uintptr_t)addr, NULL);
    assert_int_equal(errno, 0);
    return (int)word;
}

static void step_to_the_moment(int pid)
{
    const uint64_t debug = state_of(pid);
    for (int i = 0; i < STEPS_MAX && word_at(pid, debug + offsetof(struct r_debug, r_version)) == 0;
         i++) {
        int status = 0;
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
        assert_int_equal(waitpid(pid, &status, __WALL), pid);
        assert_true(WIFSTOPPED(status));
    }
    assert_int_not_equal(word_at(pid, debug + offsetof(struct r_debug, r_version)), 0);
    assert_int_equal(word_at(pid, debug + offsetof(struct r_debug, r_state)), RT_CONSISTENT);
}

static long trace(int request, int tid, void *addr, void *data)
{
    if (request == PTRACE_CONT && phase == AT_EXEC) {
        step_to_the_moment(tid);
        phase = IN_MOMENT;
        return 0;
    }
    return request == PTRACE_INTERRUPT && phase == IN_MOMENT
               ? 0
               : kernel_calls_real.ptrace(request, tid, addr, data);
}

static int wait_for(int tid, int *status, int options)
{
    if (phase == IN_MOMENT) {
        phase = BEYOND;
        *status = PTRACE_EVENT_STOP << 16 | SIGTRAP << 8 | 0x7f;
        return tid;
    }
    const int got = kernel_calls_real.wait(tid, status, options);
    if (got == tid && WIFSTOPPED(*status) && *status >> 16 == PTRACE_EVENT_EXEC) {
        phase = AT_EXEC;
    }
    return got;
}

// Start a program that is traced with these calls, and let it run to the end of its loader.
static void run_with(const struct kernel_calls *calls)
{
    int pipe_fds[2];
    phase = BEFORE_EXEC;
    assert_int_equal(pipe(pipe_fds), 0);
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        char *const nothing[] = {NULL};
        (void)close(pipe_fds[1]);
        (void)!read(pipe_fds[0], &byte, 1); // until it is traced
        (void)execle("/bin/true", "true", (char *)NULL, nothing);
        _exit(127);
    }
    struct fresh_start start = {.pid = child, .tid = child, .calls = calls};
    struct err_info info = {0};
    assert_int_equal(fresh_stop_begin(&start, &info), ERR_OK);
    assert_int_equal(close(pipe_fds[1]), 0);
    if (fresh_stop_run(&start, &info) != ERR_OK) {
        fail_msg("%s", err_text(&info));
    }
    fresh_stop_release(&start);
    assert_int_equal(kill(child, SIGCONT), 0); // it may have stopped after the last look
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(close(pipe_fds[0]), 0);
}

static void a_loader_that_has_not_begun_is_not_done(void **state)
{
    (void)state;
    struct kernel_calls calls = kernel_calls_real;
    calls.ptrace = trace;
    calls.wait = wait_for;
    run_with(&calls);
    assert_int_equal(phase, BEYOND);
}

static int g_signal;

// Send the signal when the loader runs, and continue what it stops.
static long trace_signalled(int request, int tid, void *addr, void *data)
{
    const long result = kernel_calls_real.ptrace(request, tid, addr, data);
    if (request == PTRACE_CONT && phase == AT_EXEC) {
        phase = BEYOND;
        assert_int_equal(kill(tid, g_signal), 0);
    } else if (request == PTRACE_LISTEN) {
        assert_int_equal(kill(tid, SIGCONT), 0);
    }
    return result;
}

static void a_signal_does_not_hold_the_loader_up(void **state)
{
    (void)state;
    const int signals[] = {SIGCHLD, SIGWINCH, SIGSTOP};
    struct kernel_calls calls = kernel_calls_real;
    calls.ptrace = trace_signalled;
    calls.wait = wait_for;
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        g_signal = signals[i];
        run_with(&calls);
        assert_int_equal(phase, BEYOND);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loader_that_has_not_begun_is_not_done),
        cmocka_unit_test(a_signal_does_not_hold_the_loader_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
