// SPDX-License-Identifier: MIT
// recorder_loop: the recorder's work while the program runs. See recorder.h.
//
// Each round: drain the lanes, handle signals, reap the program, sample memory, write a checkpoint;
// then sleep until a lane is half full, or for some milliseconds; longer while nothing is recorded
// (recorder_rest.c).
#include <inttypes.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/minmax.h"
#include "host/os/file.h"
#include "host/text/format.h"
#include "recorder/memory/own_memory.h"
#include "recorder/processes/pending_processes.h"
#include "recorder/recorder_snapshots.h"
#include "recorder/recorder_state.h"
#include "recorder/session/words_memory.h"
#include "recording/write/recording_writer.h"
#include "session/books/book_layout.h"

enum {
    SLEEP_MS_MAX = 16,        // when nothing has happened for a while
    SAMPLE_SLEEP_MS_MAX = 40, // the same with --sample; looks for processes come every 50 ms
    STRANGER_CHECK_MS = 500,  // between two checks of processes that outlive the program
    LEAVE_MS = 2,             // beyond a tick, in which threads notice that recording is over
    LINGER_SAY_MS = 500,      // time until the message that others still run
    URGENT_MS = 1000,         // after a process has begun to be recorded
    MANY_THREADS = 256,       // among which the recorder would wait for the processor
};

static void note_end(struct recorder_state *s)
{
    s->has_ended = true;
    s->program_end_ms = session_clock_now(&s->clock);
    s->end_ms = s->program_end_ms;
}

static void reap_program(struct recorder_state *s)
{
    if (s->is_attached) { // wait4 cannot reap what is not our child
        if (!s->has_ended && recorder_attach_is_over(s)) {
            note_end(s);
        }
        return;
    }
    int status = 0;
    struct rusage usage = {0};
    siginfo_t change = {0};
    // A thread of ours may trace it: waitid in that thread reports its stops.
    if (waitid(P_PID, (id_t)s->program.pid, &change, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        change.si_code != CLD_EXITED && change.si_code != CLD_KILLED &&
        change.si_code != CLD_DUMPED) {
        return;
    }
    if (!s->has_ended && wait4(s->program.pid, &status, WNOHANG, &usage) == s->program.pid) {
        note_end(s);
        s->wait_status = status;
        s->program_rss_bytes = (uint64_t)usage.ru_maxrss * 1024; // getrusage(2): in KiB
    }
}

// Handle a signal. The terminal's signals reach the program themselves, since it is in the
// recorder's process group; signals sent to the recorder alone are passed on. After the program's
// end they concern the recorder.
static void take_signal(struct recorder_state *s, const struct signalfd_siginfo *signal)
{
    const int number = (int)signal->ssi_signo;
    if (number == SIGCHLD) {
        return; // the loop waits for children itself
    }
    if (s->has_ended || s->is_attached) {
        s->is_stopped = true;
        return;
    }
    const bool is_from_somebody = signal->ssi_code <= 0; // SI_USER, SI_QUEUE, SI_TKILL
    if (is_from_somebody && signal->ssi_pid != (uint32_t)s->program.pid) {
        (void)kill(s->program.pid, number); // a zombie at worst: not reaped yet
    }
}

void recorder_take_signals(struct recorder_state *s)
{
    struct signalfd_siginfo signal;
    while (read(s->signal_fd, &signal, sizeof(signal)) == (ssize_t)sizeof(signal)) {
        take_signal(s, &signal);
    }
}

// Write a checkpoint in its own process, so that the lanes need not wait for the snapshot either.
static enum err write_checkpoint(void *context, const char *path, struct err_info *info)
{
    struct recorder_state *s = context;
    // If the recorder dies meanwhile, no client may wait at a socket without a listener.
    control_socket_close(&s->socket);
    fd_closep(&s->session.socket);
    if (s->session.door > 0) {
        fd_closep(&s->session.door);
    }
    CLEANUP(aggregator_snapshot_release) struct aggregator_snapshot snapshot = {0};
    TRY(recorder_snapshot(s, REC_STATE_RUNNING, &snapshot));
    const struct table_supply history = row_history_supply(&snapshot.history);
    const struct recording_write_options options = {
        .generation = (uint32_t)s->checkpoint.written_count + 1, .supply = &history};
    return recording_write(&snapshot.recording, path, &options, info);
}

void recorder_keep_state(struct recorder_state *s)
{
    struct err_info trouble = {0};
    const bool had_failed = s->rotation.has_failed;
    rotation_settle(&s->rotation, s->checkpoint.ended_count);
    s->rotation.has_failed = rotation_keep(&s->rotation, clock_real_ns(), &trouble) != ERR_OK;
    if (s->rotation.has_failed && !had_failed) {
        recorder_log(s, "%s", err_text(&trouble));
    }
}

// Ask for a checkpoint when memory is about to run out, and mark the moment.
static void guard_against_oom(struct recorder_state *s, uint64_t now_ms)
{
    if (!s->options->guards_oom || !oom_guard_is_due(&s->oom_guard, s->rest.is_resting, now_ms)) {
        return;
    }
    char proc_cgroup[32];
    (void)snprintf(proc_cgroup, sizeof(proc_cgroup), "/proc/%d/cgroup",
                   (int)s->program.pid); // fits
    const struct memory_headroom headroom =
        memory_headroom_of(proc_cgroup, s->options->cgroup_root, "/proc");
    bool just_near = false;
    if (oom_guard_look(&s->oom_guard, &headroom, drain_events(&s->drain), now_ms, &just_near)) {
        (void)checkpoint_request(&s->checkpoint, now_ms); // no request waits for this one
    }
    if (just_near) {
        struct err_info full = {0};
        (void)!run_control_mark(&s->control, now_ms, "memory limit near", &full); // has a bound
    }
}

static void follow_checkpoint(struct recorder_state *s, uint64_t now_ms)
{
    const uint64_t ended_before = s->checkpoint.ended_count;
    switch (checkpoint_poll(&s->checkpoint, now_ms)) {
    case CHECKPOINT_FAILED:
        recorder_log(s, "%s; the program continues, %s", err_text(s->checkpoint.report),
                     checkpoint_what_stays(&s->checkpoint));
        break;
    case CHECKPOINT_RECOVERED:
        recorder_log(s, "the recording can be written again");
        break;
    case CHECKPOINT_WRITTEN:
    case CHECKPOINT_NOTHING:
        break;
    }
    if (s->checkpoint.ended_count != ended_before) {
        const bool is_awaited = rotation_is_awaited(&s->rotation, s->checkpoint.ended_count);
        const bool is_wanted = is_awaited || rotation_has_grown(&s->rotation);
        if (is_wanted && !s->checkpoint.has_failed) {
            recorder_keep_state(s);
        }
        recorder_control_reply_written(s, is_awaited);
    }
    if (rotation_is_due(&s->rotation, s->checkpoint.ended_count, now_ms)) {
        rotation_await(&s->rotation, checkpoint_request(&s->checkpoint, now_ms));
    }
    checkpoint_expect(&s->checkpoint, aggregator_snapshot_cost_ms(&s->aggregator));
    if (!checkpoint_is_due(&s->checkpoint, now_ms, s->drain.read_ms)) {
        return;
    }
    const struct checkpoint_source source = {.context = s, .write = write_checkpoint};
    checkpoint_start(&s->checkpoint, &source, now_ms);
}

// Note how long the lanes were not read, but for sleep.
static void note_gap(struct recorder_state *s, bool is_over)
{
    struct lane_gaps *gaps = &s->gaps;
    const uint64_t now_ns = clock_monotonic_ns();
    const uint64_t processor_ns = clock_thread_cpu_ns();
    if (gaps->since_ns != 0) {
        gaps->longest_ns = max_u64(gaps->longest_ns, now_ns - gaps->since_ns);
        gaps->longest_processor_ns =
            max_u64(gaps->longest_processor_ns, processor_ns - gaps->since_processor_ns);
        urgent_turns_note_wait(&s->urgency.turns,
                               gaps->since_ns + processor_ns - gaps->since_processor_ns, now_ns);
    }
    gaps->since_ns = is_over ? 0 : now_ns;
    gaps->since_processor_ns = processor_ns;
}

static void log_gaps(const struct recorder_state *s)
{
    if (s->options->tells_stops && s->gaps.longest_ns > 0) {
        recorder_log(s, "the lanes were left unread for at most %.2f ms (%.2f ms of work)",
                     (double)s->gaps.longest_ns / NS_PER_MS,
                     (double)s->gaps.longest_processor_ns / NS_PER_MS);
    }
}

// Sleep until a lane is half full (then recorder_wake differs from `seen`) or for `sleep_ms`.
static void sleep_until_woken(struct recorder_state *s, uint32_t seen, uint64_t sleep_ms)
{
    const struct timespec timeout = {.tv_nsec = (long)(sleep_ms * 1000000u)};
    const uint64_t due_ns = clock_monotonic_ns() + sleep_ms * NS_PER_MS;
    (void)syscall(SYS_futex, &s->session.header->recorder_wake, FUTEX_WAIT, seen, &timeout, NULL,
                  0); // the reason of its end is irrelevant
    urgent_turns_note_wait(&s->urgency.turns, due_ns, clock_monotonic_ns());
}

static void say_others(struct recorder_state *s, uint64_t count, uint64_t now_ms)
{
    if (count > 0 && !s->has_said_others && now_ms >= s->said_after_ms) {
        s->has_said_others = true;
        recorder_log(s,
                     "the program has ended, but %s still running; recording continues until the "
                     "end of what it started (Ctrl-C stops it now)",
                     format_things(count, "process of it is", "processes of it are").text);
    }
}

// Return whether the recording is over.
static bool is_over(struct recorder_state *s, bool was_busy, uint64_t now_ms)
{
    s->is_stopped = s->is_stopped || run_control_is_over(&s->control, now_ms);
    if (s->is_stopped) {
        return true;
    }
    if (!s->has_ended || was_busy) {
        return false;
    }
    const uint32_t followed = recorder_follow_running(s);
    if (s->drain.process_count == 0 && followed == 0) {
        const bool awaits_others = s->options->follow_children && !recorder_none_is_pending(s);
        if (awaits_others && s->pending.has_mapped) {
            say_others(s, 1, now_ms);
        }
        return !awaits_others;
    }
    pending_wait_restart(&s->pending, clock_monotonic_ms());
    s->end_ms = now_ms;
    if (now_ms >= s->next_stranger_check_ms) {
        s->next_stranger_check_ms = now_ms + STRANGER_CHECK_MS;
        drain_find_strangers(&s->drain, recorder_may_map, s);
    }
    say_others(s, max_u64(s->drain.process_count, recorder_follow_living(s)), now_ms);
    return false;
}

static enum err
drain_once(struct recorder_state *s, bool is_last, bool *was_busy, struct err_info *info)
{
    note_gap(s, false);
    drain_find_dead(&s->drain);
    const uint64_t clock_ms = session_clock_now(&s->clock);
    drain_note_time(&s->drain, clock_ms, clock_monotonic_ns());
    enum err err = drain_pass(&s->drain, clock_ms, is_last, was_busy);
    return err == ERR_OK
               ? ERR_OK
               : err_set(info, err, "the recorder cannot hold more data (%s)", err_name(err));
}

// Compare the memory with its cap. Return whether stacks should be merged now.
static bool update_budget(struct recorder_state *s)
{
    struct memory_budget *budget = &s->aggregator.budget;
    const uint64_t words_bytes = words_memory_bytes(
        &s->words_memory, &s->session, memory_budget_words_from(budget), clock_monotonic_ns());
    const struct memory_use use = {.own_bytes = own_memory_bytes(s->own_memory),
                                   .words_bytes = words_bytes,
                                   .lanes_bytes = s->words_memory.lanes_bytes,
                                   .entries = aggregator_entries(&s->aggregator)};
    const bool merges = memory_budget_update(budget, &use);
    // Relaxed: see layout.h.
    atomic_store_explicit(&s->session.header->memory_level, budget->level, memory_order_relaxed);
    return merges;
}

enum err recorder_drain(struct recorder_state *s)
{
    struct err_info unused = {0};
    bool was_busy = false;
    const bool is_running = s->clock.is_running && !session_is_over(s->session.header);
    if (is_running) {
        (void)update_budget(s); // the next round merges: the caller may know rows by their numbers
    }
    const enum err err = is_running ? drain_once(s, false, &was_busy, &unused) : ERR_OK;
    s->rest.quiet_since_ms = was_busy ? session_clock_now(&s->clock) : s->rest.quiet_since_ms;
    return err;
}

void recorder_wait(struct recorder_state *s)
{
    enum {
        CHECK_MS = 1000 // SIGCHLD may have arrived before the signalfd existed
    };
    struct pollfd signals = {.fd = s->signal_fd, .events = POLLIN};
    for (reap_program(s); !s->has_ended; reap_program(s)) {
        (void)poll(&signals, 1, CHECK_MS); // the reason of its end is irrelevant
        recorder_take_signals(s);
    }
}

// Say that threads gave the recorder up.
static void say_gap(struct recorder_state *s, uint64_t now_ms)
{
    if (!s->has_said_gap) {
        s->has_said_gap = true;
        recorder_log(s,
                     "the recorder did not respond for too long: the program continued, and its "
                     "events from %" PRIu64 ".%" PRIu64 " to %" PRIu64 ".%" PRIu64 " s are counted "
                     "but not recorded",
                     s->passed_ms / MS_PER_S, s->passed_ms % MS_PER_S / 100, now_ms / MS_PER_S,
                     now_ms % MS_PER_S / 100);
    }
}

// Note that threads gave the recorder up, and go on recording: what lanes held has been read. Their
// next events find the session running again (process.h). A hostile program can claim a gap, too;
// only its own recording suffers.
static enum err see_abandonment(struct recorder_state *s, uint64_t now_ms, bool is_over)
{
    uint32_t state = SESSION_ABANDONED;
    // Relaxed: the flag orders nothing else.
    if (atomic_load_explicit(&s->session.header->state, memory_order_relaxed) != state) {
        s->passed_ms = now_ms;
        return ERR_OK;
    }
    say_gap(s, now_ms);
    s->was_abandoned = s->was_abandoned || is_over || recorder_is_ending(s);
    TRY(run_control_note_gap(&s->control, s->passed_ms, now_ms));
    s->passed_ms = now_ms;
    (void)atomic_compare_exchange_strong_explicit(&s->session.header->state, &state,
                                                  SESSION_RUNNING, memory_order_relaxed,
                                                  memory_order_relaxed);
    return ERR_OK;
}

// Keep the recorder within its memory cap, and tell the user once what that costs.
static enum err check_memory(struct recorder_state *s)
{
    const struct memory_budget *budget = &s->aggregator.budget;
    const bool merges = update_budget(s);
    if ((merges || budget->is_full) && !s->has_merged) {
        s->has_merged = true;
        recorder_log(s, "call stacks have reached the memory limit (--max-memory): %s are merged",
                     budget->is_full ? "new ones" : "the rarest");
    }
    if (budget->level != 0 && !s->has_thinned) {
        s->has_thinned = true;
        s->aggregator.budget.samples_alone = run_control_sample(&s->control);
        recorder_log(s, "live blocks have reached the memory limit (--max-memory): new ones are "
                        "sampled, and all figures become estimates");
    }
    recorder_tell_of_lanes(s);
    return merges ? drain_merge_stacks(&s->drain) : ERR_OK;
}

static void see_code(struct recorder_state *s)
{
    const struct recorder_callbacks *callbacks = &s->options->callbacks;
    const struct aside_reader reader = {.read = recorder_read_aside, .context = s};
    if (callbacks->see_code != NULL) {
        callbacks->see_code(callbacks->context, &s->aggregator.stacks,
                            s->has_ended || recorder_snapshots_are_awaited(s), &reader);
    }
}

bool recorder_is_ending(const struct recorder_state *s)
{
    return s->has_ended && s->drain.process_count == 0 && recorder_follow_running(s) == 0 &&
           !s->pending.has_mapped;
}

// Come before the threads of a process that begins to be recorded, before many threads, and before
// all on a machine where the recorder is late: the others wait for us.
static void be_urgent_if_needed(struct recorder_state *s)
{
    struct recorder_urgency *urgency = &s->urgency;
    const uint64_t now_ms = clock_monotonic_ms();
    const bool is_needed = s->joining.len > 0 || s->drain.active_count >= MANY_THREADS;
    urgency->until_ms = is_needed ? now_ms + URGENT_MS : urgency->until_ms;
    // Chosen blocks of --sample fill no lane.
    const bool is_late = s->options->sample_bytes == 0 &&
                         urgent_turns_is_late(&urgency->turns, clock_monotonic_ns());
    if (now_ms >= urgency->until_ms && !is_late) {
        urgent_turns_end(&urgency->turns);
    } else {
        (void)urgent_turns_begin(&urgency->turns); // without permission as ever
    }
}

// Whether a thread, or the end of the program, should not wait for the steps of the sleep.
static bool somebody_waits(const struct recorder_state *s)
{
    return recorder_is_ending(s) || s->joining.len > 0 || s->drain.has_queries ||
           recorder_snapshots_are_awaited(s);
}

// Threads send their books as often as this, and a lane that fills up sooner wakes the recorder.
// Chosen blocks of --sample are so few that they can wait longer.
static uint64_t next_sleep_ms(const struct recorder_state *s, bool was_busy, uint64_t sleep_ms)
{
    const bool is_sampled = s->options->sample_bytes != 0;
    return was_busy && !is_sampled
               ? BOOK_HOLD_MS
               : min_u64(sleep_ms * 2, is_sampled ? SAMPLE_SLEEP_MS_MAX : SLEEP_MS_MAX);
}

// Do rounds until the recording is over.
static enum err run_rounds(struct recorder_state *s, struct err_info *info)
{
    uint64_t sleep_ms = 1;
    uint32_t last_wake = 0;
    for (;;) {
        recorder_rest_begin_pass(s);
        be_urgent_if_needed(s);
        // Relaxed: if a lane fills up after this, the futex does not sleep.
        const uint32_t wake =
            atomic_load_explicit(&s->session.header->recorder_wake, memory_order_relaxed);
        const bool had_ended = s->has_ended;
        recorder_take_signals(s);
        reap_program(s);
        const uint64_t now_ms = session_clock_now(&s->clock);
        if (s->has_ended && !had_ended) {
            pending_wait_restart(&s->pending, clock_monotonic_ms());
            s->said_after_ms = now_ms + LINGER_SAY_MS;
        }
        recorder_control_answer(s);
        TRY(run_control_tick(&s->control, now_ms));
        bool was_busy = false;
        TRY(check_memory(s));
        TRY(drain_once(s, false, &was_busy, info));
        TRY(see_abandonment(s, now_ms, false));
        if (s->options->follow_children) {
            pid_order_look(&s->pending.order, clock_monotonic_ms());
        }
        TRY(recorder_take_unrecorded(s, now_ms));
        TRY(recorder_find_runtimes(s, false));
        TRY(recorder_modules_round(s));
        TRY(recorder_join_round(s, now_ms));
        TRY(recorder_follow_round(s, now_ms));
        TRY(unrecorded_tree_round(&s->unrecorded_tree, &s->unrecorded, &s->aggregator,
                                  clock_monotonic_ns()));
        see_code(s);
        recorder_snapshots_round(s, now_ms);
        if (s->drain.main_slot != SESSION_MAX_PROCESSES) { // it waits for the rest at its exit
            TRY(recorder_warn_programs_hidden(s));
        }
        guard_against_oom(s, now_ms);
        follow_checkpoint(s, now_ms);
        if (is_over(s, was_busy, now_ms)) {
            return ERR_OK;
        }
        const bool is_awaited = wake != last_wake || somebody_waits(s);
        last_wake = wake;
        sleep_ms = is_awaited ? 1 : next_sleep_ms(s, was_busy, sleep_ms);
        note_gap(s, true);
        urgent_turns_spare_others(&s->urgency.turns);
        if (!recorder_rest_sleep(s, was_busy || is_awaited, now_ms) && !s->pending.is_certain) {
            sleep_until_woken(s, wake, sleep_ms);
        }
        urgent_turns_begin_next(&s->urgency.turns);
        note_gap(s, false);
    }
}

enum err recorder_loop(struct recorder_state *s, struct err_info *info)
{
    const enum err err = run_rounds(s, info);
    recorder_rest_end(s);
    TRY(err);
    log_gaps(s);
    TRY(recorder_warn_programs_hidden(s));
    TRY(see_abandonment(s, session_clock_now(&s->clock), true));
    TRY(recorder_follow_end(s));
    recorder_attach_end(s); // before the last records are read
    // Hooks pass everything through from now on; records written until now still count.
    atomic_store_explicit(&s->session.header->state, SESSION_ENDED, memory_order_seq_cst);
    if (!s->has_ended) {
        s->end_ms = session_clock_now(&s->clock); // writing the recording may take long
    }
    if (s->drain.process_count > 0) {
        // Running threads see the end at their next tick and leave their books alone then.
        // A signal may end the sleep early: what threads held then is read as it is.
        clock_sleep_ns((s->tick_ms + LEAVE_MS) * NS_PER_MS);
    }
    bool was_busy = false;
    return drain_once(s, true, &was_busy, info);
}
