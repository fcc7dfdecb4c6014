// SPDX-License-Identifier: MIT
#include "inject/process/threads/thread_stop_one.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/minmax.h"
#include "inject/process/threads/interrupted_call.h"
#include "inject/process/threads/thread_regs.h"

enum {
    REALTIME_MS = 20, // without a stop: the thread itself may lack the processor
    POLLS_BEFORE_SLEEP = 20,
    POLL_NS = 20000,
    ENDING_MS = 50, // until a thread that is killed has ended
};

static bool has_thread_ended(const struct target_process *target, int tid)
{
    const char state = proc_files_thread_state(target, tid);
    return state == 'Z' || state == 'X';
}

static long call_ptrace(const struct thread_stop *stop, int request, int tid, const void *data)
{
    return stop->target->calls->ptrace(request, tid, NULL, (void *)(uintptr_t)data);
}

// Let a thread go on after a stop, with the signal that it stopped for, if any.
static long pass_signal(const struct thread_stop *stop, int tid, int status)
{
    const uintptr_t number = status >> 16 == 0 ? (uintptr_t)WSTOPSIG(status) : 0;
    return call_ptrace(stop, PTRACE_CONT, tid, (const void *)number);
}

// Return what a failure of ptrace means. ESRCH: the thread has ended, or is about to, and if not,
// the kernel refuses.
static enum err refusal(const struct thread_stop *stop, int tid)
{
    if (errno != ESRCH) {
        return ERR_IO;
    }
    const uint64_t end_ns = clock_monotonic_ns() + ENDING_MS * NS_PER_MS;
    while (!has_thread_ended(stop->target, tid)) {
        if (clock_monotonic_ns() > end_ns) {
            return ERR_IO;
        }
        clock_sleep_ns(POLL_NS);
    }
    return ERR_NOT_FOUND;
}

static enum err set_regs(struct thread_stop *stop,
                         struct stopped_thread *thread,
                         const struct user_regs_struct *regs)
{
    struct user_regs_struct wanted = *regs;
    if (thread_regs_write(stop->target->calls, thread->tid, &wanted) != 0) {
        return refusal(stop, thread->tid);
    }
    thread->regs = *regs;
    return ERR_OK;
}

enum err stopped_thread_read(struct thread_stop *stop, struct stopped_thread *thread)
{
    if (thread_regs_read(stop->target->calls, thread->tid, &thread->regs) != 0) {
        return refusal(stop, thread->tid);
    }
    struct user_regs_struct regs = thread->regs;
    const struct current_call before = thread->before;
    thread->before.number = -1; // it says nothing of the next stop
    if (interrupted_call_restart(stop->target, thread->tid, &before, &regs)) {
        stop->report.restarted_calls++;
        return set_regs(stop, thread, &regs);
    }
    return stop->target->has_seccomp && interrupted_call_repeat(&regs)
               ? set_regs(stop, thread, &regs)
               : ERR_OK;
}

// Handle one answer of waitpid. Return whether the thread is in its final stop.
static bool take_stop(struct thread_stop *stop, struct stopped_thread *thread, int status)
{
    if (status >> 16 == PTRACE_EVENT_STOP) {
        thread->was_in_group_stop = WSTOPSIG(status) != SIGTRAP;
        return true;
    }
    // The thread may have been killed meanwhile: waitpid will say so.
    (void)call_ptrace(stop, PTRACE_INTERRUPT, thread->tid, NULL);
    (void)pass_signal(stop, thread->tid, status);
    return false;
}

enum stopped_thread_end
stopped_thread_wait(struct thread_stop *stop, struct stopped_thread *thread, uint64_t deadline_ns)
{
    const uint64_t ordinary_ns = clock_monotonic_ns() + REALTIME_MS * NS_PER_MS;
    for (unsigned polls = 0;; polls++) {
        int status = 0;
        const int got = stop->target->calls->wait(thread->tid, &status, __WALL | WNOHANG);
        if (got == thread->tid && WIFSTOPPED(status)) {
            thread->before.sleeps++; // in the stop
            if (take_stop(stop, thread, status)) {
                return STOPPED_THREAD_STOPPED;
            }
        } else if (got == thread->tid || (got < 0 && errno == ECHILD)) {
            return STOPPED_THREAD_GONE;
        } else if (got < 0 && errno != EINTR) {
            return STOPPED_THREAD_FAILED;
        } else if (polls >= POLLS_BEFORE_SLEEP) {
            if (clock_monotonic_ns() > deadline_ns) {
                return STOPPED_THREAD_LATE;
            }
            if (clock_monotonic_ns() > ordinary_ns) {
                urgent_turns_end(&stop->turns);
            }
            // The first thread of a process that ends before the others is never reported.
            if (polls % POLLS_BEFORE_SLEEP == 0 && has_thread_ended(stop->target, thread->tid)) {
                return STOPPED_THREAD_GONE;
            }
            clock_sleep_ns(POLL_NS);
        }
    }
}

enum err
stopped_thread_seize(struct thread_stop *stop, struct stopped_thread *thread, bool *out_gone)
{
    const int tid = thread->tid;
    const bool lifts = stop->options->lift_seccomp || stop->target->has_seccomp;
    const uintptr_t options = lifts ? PTRACE_O_SUSPEND_SECCOMP : 0;
    *out_gone = false;
    long result = call_ptrace(stop, PTRACE_SEIZE, tid, (const void *)options);
    if (result != 0 && errno == EPERM && lifts && !stop->options->lift_seccomp) {
        result = call_ptrace(stop, PTRACE_SEIZE, tid, NULL);
    }
    if (result != 0) {
        // A thread that is ending says EPERM too.
        const bool is_forbidden = errno == EPERM || errno == EACCES;
        *out_gone = is_forbidden ? has_thread_ended(stop->target, tid)
                                 : refusal(stop, tid) == ERR_NOT_FOUND;
        return *out_gone ? ERR_OK : is_forbidden ? ERR_PERMISSION : ERR_IO;
    }
    if (THREAD_REGS_LOSES_ARGUMENT) { // as late as possible: it may begin a call after that
        thread->before = interrupted_call_before(stop->target, tid);
    }
    if (call_ptrace(stop, PTRACE_INTERRUPT, tid, NULL) != 0) {
        *out_gone = refusal(stop, tid) == ERR_NOT_FOUND;
        return *out_gone ? ERR_OK : ERR_IO;
    }
    return ERR_OK;
}

enum err
thread_stop_set_regs(struct thread_stop *stop, size_t index, const struct user_regs_struct *regs)
{
    return set_regs(stop, stop->threads.items + index, regs);
}

// PTRACE_POKEDATA writes a word wherever a debugger may put a breakpoint, whatever the kernel
// permits through /proc/PID/mem (proc_mem.force_override).
static enum err poke(struct thread_stop *stop, uint64_t addr, const uint8_t *from, size_t len)
{
    const int tid = stop->threads.items[0].tid;
    const struct kernel_calls *calls = stop->target->calls;
    while (len != 0) {
        const uint64_t word_addr = addr & ~UINT64_C(7);
        const size_t offset = addr - word_addr;
        const size_t part = min_u64(len, sizeof(uint64_t) - offset);
        uint64_t word = 0;
        TRY(target_process_read(stop->target, word_addr, &word, sizeof(word)));
        memcpy((uint8_t *)&word + offset, from, part);
        if (calls->ptrace(PTRACE_POKEDATA, tid, (void *)(uintptr_t)word_addr,
                          (void *)(uintptr_t)word) != 0) {
            return ERR_IO;
        }
        addr += part;
        from += part;
        len -= part;
    }
    return ERR_OK;
}

enum err thread_stop_write(struct thread_stop *stop, uint64_t addr, const void *from, size_t len)
{
    return target_process_write(stop->target, addr, from, len) == ERR_OK
               ? ERR_OK
               : poke(stop, addr, from, len);
}

enum err thread_stop_let_run(struct thread_stop *stop,
                             size_t index,
                             bool (*done)(void *context),
                             void *context,
                             uint32_t limit_ms)
{
    struct stopped_thread *thread = stop->threads.items + index;
    if (call_ptrace(stop, PTRACE_CONT, thread->tid, NULL) != 0) {
        return refusal(stop, thread->tid);
    }
    const uint64_t deadline_ns = clock_monotonic_ns() + limit_ms * NS_PER_MS;
    while (!done(context)) {
        // A signal stops it here; after SIGSTOP it goes on, too, until it is stopped again below.
        int status = 0;
        const int got = stop->target->calls->wait(thread->tid, &status, __WALL | WNOHANG);
        if (got == thread->tid && !WIFSTOPPED(status)) {
            return ERR_NOT_FOUND;
        }
        if (got == thread->tid) {
            (void)pass_signal(stop, thread->tid, status); // it may have been killed meanwhile
        }
        if (clock_monotonic_ns() > deadline_ns) {
            break;
        }
        clock_sleep_ns(POLL_NS);
    }
    const bool is_done = done(context);
    if (call_ptrace(stop, PTRACE_INTERRUPT, thread->tid, NULL) != 0) {
        return refusal(stop, thread->tid);
    }
    if (stopped_thread_wait(stop, thread, deadline_ns + limit_ms * NS_PER_MS) !=
        STOPPED_THREAD_STOPPED) {
        return ERR_NOT_FOUND;
    }
    TRY(stopped_thread_read(stop, thread));
    return is_done ? ERR_OK : ERR_LIMIT;
}

// Wait for the next stop of a held thread. *out_signal: what it is to have; *out_is_entry: it is
// about to make a system call.
static enum err wait_for_call(struct thread_stop *stop,
                              uint64_t deadline_ns,
                              uintptr_t *out_signal,
                              bool *out_is_entry)
{
    const int tid = stop->threads.items[0].tid;
    struct __ptrace_syscall_info call = {0};
    int status = 0;
    int got = 0;
    while ((got = stop->target->calls->wait(tid, &status, __WALL | WNOHANG)) == 0) {
        if (clock_monotonic_ns() > deadline_ns) {
            return ERR_LIMIT;
        }
        sched_yield(); // the thread only makes a call
    }
    if (got != tid || !WIFSTOPPED(status)) {
        return ERR_NOT_FOUND;
    }
    const bool is_call = WSTOPSIG(status) == (SIGTRAP | 0x80); // PTRACE_O_TRACESYSGOOD
    *out_signal = is_call || status >> 16 != 0 ? 0 : (uintptr_t)WSTOPSIG(status);
    *out_is_entry = false;
    if (is_call) {
        if (stop->target->calls->ptrace(PTRACE_GET_SYSCALL_INFO, tid, (void *)sizeof(call),
                                        &call) <= 0) {
            return ERR_IO;
        }
        *out_is_entry = call.op == PTRACE_SYSCALL_INFO_ENTRY;
    }
    return ERR_OK;
}

enum err thread_stop_let_call(struct thread_stop *stop, size_t count, uint32_t limit_ms)
{
    const int tid = stop->threads.items[0].tid;
    const uint64_t deadline_ns = clock_monotonic_ns() + limit_ms * NS_PER_MS;
    uintptr_t signal = 0;
    bool is_entry = false;
    for (size_t entries = 0; entries < count || is_entry;) {
        if (stop->target->calls->ptrace(PTRACE_SYSCALL, tid, NULL, (void *)signal) != 0) {
            return ERR_NOT_FOUND;
        }
        TRY(wait_for_call(stop, deadline_ns, &signal, &is_entry));
        entries += is_entry;
    }
    return stopped_thread_read(stop, stop->threads.items);
}
