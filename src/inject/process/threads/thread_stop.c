// SPDX-License-Identifier: MIT
// thread_stop: see thread_stop.h.
//
// One attempt is one tracer thread. It stops the threads of the target that it sees in /proc
// (thread_stop_one.h), pass by pass, calls `work`, and lets all of them go.
#include "inject/process/threads/thread_stop.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "host/containers/map_u64.h"
#include "host/text/format.h"
#include "host/threads/quiet_thread.h"
#include "inject/process/proc_files.h"
#include "inject/process/target_refusal.h"
#include "inject/process/threads/thread_regs.h"
#include "inject/process/threads/thread_stop_one.h"

enum {
    LIMIT_MS = 100,
    ATTEMPTS = 10,
    VAIN_ATTEMPTS = 3, // in which less than half of the threads stopped
    POLL_NS = 20000,
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
        TRY(stopped_thread_seize(&tracer->stop, &thread, &is_gone));
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
        switch (stopped_thread_wait(&tracer->stop, &thread, tracer->deadline_ns)) {
        case STOPPED_THREAD_STOPPED:
            err = stopped_thread_read(&tracer->stop, &thread);
            break;
        case STOPPED_THREAD_GONE:
            break;
        case STOPPED_THREAD_LATE:
            tracer->was_vain = i < threads->len / 2;
            return ERR_LIMIT;
        case STOPPED_THREAD_FAILED:
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
        (void)tracer->stop.target->calls->ptrace(PTRACE_DETACH, threads->items[i].tid, NULL, NULL);
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
    TRY(stopped_thread_read(stop, stop->threads.items));
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
