// SPDX-License-Identifier: MIT
// thread_stop: see thread_stop.h.
//
// One attempt is one tracer thread. Its states for each thread of the target:
//
//   seen in /proc -> SEIZE, INTERRUPT -> waited for -> stopped (PTRACE_EVENT_STOP) -> ... -> let go
//                                           |  ^
//                                           v  | INTERRUPT, CONT(signal)
//                                     a signal is to be delivered
//
// A stop for a signal clears the pending interruption, so the thread is interrupted again before it
// goes on: it sets up the handler's frame and stops at the handler's first instruction. So a
// stopped thread holds no signal, and letting it go passes none.
#include "inject/process/threads/thread_stop.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "host/containers/map_u64.h"
#include "host/text/format.h"
#include "host/threads/quiet_thread.h"
#include "inject/process/proc_files.h"
#include "inject/process/target_refusal.h"
#include "inject/process/threads/interrupted_call.h"
#include "inject/process/threads/thread_regs.h"

enum {
    LIMIT_MS = 100,
    ATTEMPTS = 10,
    VAIN_ATTEMPTS = 3, // in which less than half of the threads stopped
    REALTIME_MS = 20,  // without a stop: the thread itself may lack the processor
    POLLS_BEFORE_SLEEP = 20,
    POLL_NS = 20000,
    ENDING_MS = 50, // until a thread that is killed has ended
    VFORK_POLL_NS = 200000,
    PAUSE_MS = 2, // before the second attempt; longer before each further one
    PAUSE_MS_MAX = 50,
};

struct tracer {
    struct thread_stop stop;
    enum err (*work)(struct thread_stop *stop, void *context, struct err_info *info);
    void *context;
    struct err_info reason; // of `work`, or what cairn lacks
    enum err result;
    pid_t tid;            // of the tracer
    uint64_t deadline_ns; // of the present waiting
    uint64_t begin_ns;    // of the first interruption
    bool was_vain;        // most threads were not stopped in time
    struct map_u64 seen;  // threads of the target that were seized or skipped
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

// Read the registers of a thread that has just stopped.
static enum err take_regs(struct thread_stop *stop, struct stopped_thread *thread)
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

enum wait_end {
    WAIT_STOPPED,
    WAIT_GONE,
    WAIT_TIMEOUT,
    WAIT_FAILED
};

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

static enum wait_end
wait_for_stop(struct thread_stop *stop, struct stopped_thread *thread, uint64_t deadline_ns)
{
    const uint64_t ordinary_ns = clock_monotonic_ns() + REALTIME_MS * NS_PER_MS;
    for (unsigned polls = 0;; polls++) {
        int status = 0;
        const int got = stop->target->calls->wait(thread->tid, &status, __WALL | WNOHANG);
        if (got == thread->tid && WIFSTOPPED(status)) {
            if (take_stop(stop, thread, status)) {
                return WAIT_STOPPED;
            }
        } else if (got == thread->tid || (got < 0 && errno == ECHILD)) {
            return WAIT_GONE;
        } else if (got < 0 && errno != EINTR) {
            return WAIT_FAILED;
        } else if (polls >= POLLS_BEFORE_SLEEP) {
            if (clock_monotonic_ns() > deadline_ns) {
                return WAIT_TIMEOUT;
            }
            if (clock_monotonic_ns() > ordinary_ns) {
                urgent_turns_end(&stop->turns);
            }
            // The first thread of a process that ends before the others is never reported.
            if (polls % POLLS_BEFORE_SLEEP == 0 && has_thread_ended(stop->target, thread->tid)) {
                return WAIT_GONE;
            }
            clock_sleep_ns(POLL_NS);
        }
    }
}

// Seize and interrupt one thread. *out_gone: it has ended meanwhile.
static enum err seize(struct thread_stop *stop, struct stopped_thread *thread, bool *out_gone)
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
        thread->before = proc_files_current_call(stop->target, tid);
    }
    if (call_ptrace(stop, PTRACE_INTERRUPT, tid, NULL) != 0) {
        *out_gone = refusal(stop, tid) == ERR_NOT_FOUND;
        return *out_gone ? ERR_OK : ERR_IO;
    }
    return ERR_OK;
}

// Seize the threads that are new since the last pass, and add them to the stopped ones.
static enum err seize_new(struct tracer *tracer, struct u32_vec *tids)
{
    for (size_t i = 0; i < tids->len; i++) {
        const int tid = (int)tids->items[i];
        if (map_u64_find(&tracer->seen, (uint64_t)tid) != NULL) {
            continue;
        }
        TRY(map_u64_put(&tracer->seen, (uint64_t)tid, 1));
        TRY(stopped_thread_vec_reserve(&tracer->stop.threads, 1));
        bool is_gone = false;
        struct stopped_thread thread = {.tid = tid, .before.number = -1};
        urgent_turns_spare_others(&tracer->stop.turns);
        TRY(seize(&tracer->stop, &thread, &is_gone));
        if (!is_gone) {
            TRY(stopped_thread_vec_push(&tracer->stop.threads, thread));
        }
    }
    return ERR_OK;
}

// Wait for the threads from `first` on; remove those that have ended.
static enum err wait_for_new(struct tracer *tracer, size_t first)
{
    struct stopped_thread_vec *threads = &tracer->stop.threads;
    size_t kept = first;
    for (size_t i = first; i < threads->len; i++) {
        struct stopped_thread thread = threads->items[i];
        enum err err = ERR_NOT_FOUND;
        urgent_turns_spare_others(&tracer->stop.turns);
        switch (wait_for_stop(&tracer->stop, &thread, tracer->deadline_ns)) {
        case WAIT_STOPPED:
            err = take_regs(&tracer->stop, &thread);
            break;
        case WAIT_GONE:
            break;
        case WAIT_TIMEOUT:
            tracer->was_vain = i < threads->len / 2;
            return ERR_LIMIT;
        case WAIT_FAILED:
            return ERR_IO;
        }
        if (err == ERR_OK) {
            threads->items[kept++] = thread;
        } else if (err != ERR_NOT_FOUND) {
            return err;
        }
    }
    threads->len = kept;
    return ERR_OK;
}

// A stopped thread starts no other, so the second or third pass finds nothing new.
static enum err stop_threads(struct tracer *tracer)
{
    struct thread_stop *stop = &tracer->stop;
    tracer->begin_ns = clock_monotonic_ns();
    tracer->deadline_ns = tracer->begin_ns + stop->options->limit_ms * NS_PER_MS;
    for (bool is_first = true;; is_first = false) {
        CLEANUP(u32_vec_release) struct u32_vec tids = {0};
        if (stop->options->only_tid != 0) {
            TRY(u32_vec_push(&tids, (uint32_t)stop->options->only_tid));
        } else {
            TRY(proc_files_list_threads(stop->target, &tids, &tracer->reason));
        }
        const size_t first = stop->threads.len;
        const size_t seen = map_u64_count(&tracer->seen);
        TRY(seize_new(tracer, &tids));
        TRY(wait_for_new(tracer, first));
        if (!is_first && map_u64_count(&tracer->seen) == seen) {
            break;
        }
        if (clock_monotonic_ns() > tracer->deadline_ns) {
            return ERR_LIMIT; // threads come faster than they are stopped
        }
    }
    stop->report.stop_ns = clock_monotonic_ns() - tracer->begin_ns;
    stop->report.threads = (uint32_t)stop->threads.len;
    return stop->threads.len != 0 ? ERR_OK : ERR_NOT_FOUND;
}

// vfork(2): the parent sleeps until its child calls exec or ends, and does not stop before.
static bool is_in_vfork(const struct target_process *target, int tid)
{
    if (proc_files_thread_state(target, tid) != 'D') {
        return false;
    }
    static const long numbers[] = {THREAD_REGS_OLD_FORK_CALLS SYS_clone, SYS_clone3};
    const long number = proc_files_current_call(target, tid).number;
    bool is_fork = false;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        is_fork = is_fork || number == numbers[i];
    }
    return is_fork;
}

static enum err wait_for_vforks(struct tracer *tracer)
{
    const struct target_process *target = tracer->stop.target;
    const uint64_t deadline_ns = clock_monotonic_ns() + tracer->stop.options->limit_ms * NS_PER_MS;
    CLEANUP(u32_vec_release) struct u32_vec tids = {0};
    TRY(proc_files_list_threads(target, &tids, &tracer->reason));
    for (size_t i = 0; i < tids.len; i++) {
        while (is_in_vfork(target, (int)tids.items[i])) {
            if (clock_monotonic_ns() > deadline_ns) {
                return ERR_LIMIT;
            }
            clock_sleep_ns(VFORK_POLL_NS);
        }
    }
    return ERR_OK;
}

// With real-time priority no thread that goes on delays the release of the others, and they do not
// all begin to run at once. A thread that was killed meanwhile needs no release.
static void release(struct tracer *tracer)
{
    const struct stopped_thread_vec *threads = &tracer->stop.threads;
    for (size_t i = 0; i < threads->len; i++) {
        urgent_turns_spare_others(&tracer->stop.turns);
        (void)call_ptrace(&tracer->stop, PTRACE_DETACH, threads->items[i].tid, NULL);
    }
    tracer->stop.report.held_ns = clock_monotonic_ns() - tracer->begin_ns;
}

static enum err trace(struct tracer *tracer)
{
    struct thread_stop *stop = &tracer->stop;
    // Without permission the default of 50 us makes the stop a little longer.
    (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    if (stop->options->only_tid == 0) {
        TRY(wait_for_vforks(tracer));
    }
    stop->report.is_realtime = urgent_turns_begin(&stop->turns);
    enum err err = stop_threads(tracer);
    if (err == ERR_OK) {
        const uint64_t before = clock_monotonic_ns();
        err = tracer->work(stop, tracer->context, &tracer->reason);
        stop->report.work_ns = clock_monotonic_ns() - before;
    }
    if (stop->report.is_realtime && urgent_turns_begin(&stop->turns)) {
        release(tracer);
    }
    return err;
}

static void *run_tracer(void *argument)
{
    struct tracer *tracer = argument;
    tracer->tid = gettid();
    tracer->result = trace(tracer);
    return NULL;
}

// A joined thread may still be about to let its threads go; it has done so once it has no number.
static void wait_until_released(pid_t tid)
{
    for (unsigned polls = 0; tgkill(getpid(), tid, 0) == 0; polls++) {
        clock_sleep_ns(POLL_NS);
    }
}

static enum err run_attempt(struct tracer *tracer)
{
    pthread_t thread;
    const int problem = quiet_thread_start(&thread, run_tracer, tracer);
    if (problem != 0) {
        return err_set_errno(&tracer->reason, problem, "cannot start a thread");
    }
    (void)pthread_join(thread, NULL); // cannot fail: it was started here
    wait_until_released(tracer->tid);
    if (tracer->begin_ns != 0 && tracer->stop.report.held_ns == 0) {
        tracer->stop.report.held_ns = clock_monotonic_ns() - tracer->begin_ns;
    }
    return tracer->result;
}

static enum err explain(const struct tracer *tracer, struct err_info *info)
{
    const struct target_process *target = tracer->stop.target;
    const enum err err = tracer->stop.try_again ? ERR_LIMIT : tracer->result;
    if (tracer->reason.code != ERR_OK && !tracer->stop.try_again) {
        if (info != NULL) {
            *info = tracer->reason;
        }
        return err;
    }
    if (err == ERR_LIMIT) {
        return err_set(info, err,
                       "the threads of process %d could not be stopped within %u ms in %s; "
                       "it goes on unchanged, try again when the machine is less busy",
                       target->pid, tracer->stop.options->limit_ms,
                       format_things(tracer->stop.report.attempts, "attempt", "attempts").text);
    }
    if (err == ERR_IO) {
        return err_set(info, err, "the kernel does not let cairn stop process %d", target->pid);
    }
    return target_refusal_explain(target, err, info);
}

// A pause before the next attempt, a little longer each time.
static void pause_after(uint32_t attempt)
{
    clock_sleep_ns(min_u64((uint64_t)PAUSE_MS * attempt, PAUSE_MS_MAX) * NS_PER_MS);
}

// The only thread is stopped, and stays so.
static enum err work_while_held(struct tracer *tracer)
{
    struct thread_stop *stop = &tracer->stop;
    TRY(stopped_thread_vec_push(
        &stop->threads, (struct stopped_thread){.tid = stop->target->pid, .before.number = -1}));
    TRY(take_regs(stop, stop->threads.items));
    stop->report.threads = 1;
    return tracer->work(stop, tracer->context, &tracer->reason);
}

enum err
thread_stop_run(struct target_process *target,
                const struct stop_options *options,
                enum err (*work)(struct thread_stop *stop, void *context, struct err_info *info),
                void *context,
                struct stop_report *report,
                struct err_info *info)
{
    struct stop_options filled = *options;
    filled.limit_ms = filled.limit_ms != 0 ? filled.limit_ms : LIMIT_MS;
    filled.attempts = filled.attempts != 0 ? filled.attempts : ATTEMPTS;
    target->has_seccomp = target->has_seccomp || proc_files_is_confined(target, target->live_tid);
    struct tracer tracer;
    for (uint32_t attempt = 1;; attempt++) {
        tracer = (struct tracer){
            .stop = {.target = target, .options = &filled, .report.attempts = attempt},
            .work = work,
            .context = context,
        };
        tracer.result = filled.is_held ? work_while_held(&tracer) : run_attempt(&tracer);
        stopped_thread_vec_release(&tracer.stop.threads);
        map_u64_release(&tracer.seen);
        const bool is_early = tracer.result == ERR_LIMIT || tracer.stop.try_again;
        if (!is_early || attempt == filled.attempts ||
            (tracer.was_vain && attempt >= VAIN_ATTEMPTS)) {
            break;
        }
        pause_after(attempt);
    }
    if (report != NULL) {
        *report = tracer.stop.report;
    }
    const bool is_done = tracer.result == ERR_OK && !tracer.stop.try_again;
    return is_done ? ERR_OK : explain(&tracer, info);
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
    if (wait_for_stop(stop, thread, deadline_ns + limit_ms * NS_PER_MS) != WAIT_STOPPED) {
        return ERR_NOT_FOUND;
    }
    TRY(take_regs(stop, thread));
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
    return take_regs(stop, stop->threads.items);
}
