// SPDX-License-Identifier: MIT
// recorder_rest: the recorder's sleep while nothing is recorded. See recorder_state.h.
//
//   awake   --nothing recorded for QUIET_MS, nothing under way--> settling: the clock rests
//   settling --a pass, a millisecond later, still finds nothing--> asleep, up to a second
//   any     --a recorded thread, a signal, a request, the end of a process--> awake
//
// The second pass is a part of the proof that no wake-up is lost (recorder_wake.h). Asleep, the
// main thread polls what may happen, and the clock's thread sleeps in the futex that recorded
// threads wake. So an idle recorder wakes once a second, for looks at the processes' memory. What
// has a time of its own, such as the end of --duration, limits the sleep. A process that may make
// no system call to wake the recorder (confinement.h) counts its wish, and the main thread looks
// whether it has: at first 25 times a second, and later the less the longer nothing has come, down
// to once a second.
//
// Processes may be read aside (recorder_aside.c) during a rest: then lanes are read as ever, and a
// process that asks for the session's memory ends the rest. But no rest begins in such a pass: its
// `now_ms` is of before the reading.
//
// Invariant: while the clock rests, nothing waits for the recorder: a thread that is about to wait
// wakes it first, and it does not begin to rest before it has answered.
#include <poll.h>

#include "base/minmax.h"
#include "recorder/recorder_breakdown.h"
#include "recorder/recorder_snapshots.h"
#include "recorder/recorder_state.h"

enum {
    QUIET_MS = 50,
    SETTLE_MS = 2, // more than a millisecond, whatever fractions were cut off
    SLEEP_MS = 1000,
    FIRST_SLEEP_MS = 250,  // the looks at threads without events come after 200 (drain_lane_look)
    CONFINED_LOOK_MS = 40, // to begin with; less than what threads wait (recorder_liveness)
    REST_LOOKS = 4,        // a confined thread waits at most for such a part of the rest
    WATCHED_MAX = 64,      // what is beyond is seen after SLEEP_MS
};

// Descriptors to poll.
struct watch {
    struct pollfd items[WATCHED_MAX];
    size_t count;
};

static void add(struct watch *watch, int fd)
{
    if (fd > 0 && watch->count < WATCHED_MAX) {
        watch->items[watch->count++] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
}

static bool is_attaching(const struct recorder_state *s)
{
    bool is_attaching = s->joining.len > 0 || s->copies.len > 0 || s->follow.items.len > 0;
    for (size_t i = 0; i < s->attached.len; i++) {
        const struct attached_process *process = s->attached.items + i;
        is_attaching =
            is_attaching || process->search != NULL || (process->has_ended && process->is_followed);
    }
    return is_attaching;
}

static bool awaits_programs(const struct recorder_state *s)
{
    return s->unrecorded.recent.len > 0 || s->unrecorded.wanted.len > 0 ||
           s->unrecorded.loaded.len > 0 || s->unrecorded_tree.processes.len > 0;
}

static bool awaits_snapshot(const struct recorder_state *s)
{
    return s->owes_snapshot || recorder_snapshots_are_awaited(s) ||
           s->aggregator.processes.len > s->sampled_processes;
}

// Return whether only time can bring something to do. When the last process has ended there is no
// rest.
static bool is_quiet(const struct recorder_state *s)
{
    return s->clock.is_running && !recorder_is_ending(s) && !is_attaching(s) &&
           !awaits_programs(s) && !awaits_snapshot(s) && drain_is_quiet(&s->drain);
}

// Return how long nothing is due.
static uint64_t sleep_ms_of(const struct recorder_state *s, uint64_t now_ms)
{
    const bool is_first = now_ms < s->rest.began_ms + FIRST_SLEEP_MS;
    uint64_t due_ms = is_first ? now_ms + FIRST_SLEEP_MS : next_whole_u64(now_ms, SLEEP_MS);
    due_ms = min_u64(due_ms, run_control_next_ms(&s->control));
    due_ms = min_u64(due_ms, s->sampler.next_glance_ms);
    if (s->options->guards_oom) {
        due_ms = min_u64(due_ms, s->oom_guard.rest_next_ms);
    }
    if (s->checkpoint.is_wanted) { // it follows when all is known that was before its request
        due_ms = min_u64(due_ms, now_ms + SETTLE_MS);
    }
    if (s->has_ended) {
        due_ms = min_u64(due_ms, s->next_stranger_check_ms);
    }
    return max_u64(excess_u64(due_ms, now_ms), 1);
}

static void add_joining(struct watch *watch, const struct recorder_state *s)
{
    add(watch, s->session.socket);
    add(watch, s->session.door);
}

// Return whether anything has happened.
static bool poll_all(struct recorder_state *s, uint64_t sleep_ms)
{
    struct watch watch = {0};
    add_joining(&watch, s); // the first ones end the rest
    const size_t joining = watch.count;
    add(&watch, s->clock.wake_fd);
    add(&watch, s->signal_fd);
    add(&watch, s->has_ended ? -1 : s->program.pidfd);
    add(&watch, s->drain.epoll);
    add(&watch, s->socket.listener);
    for (size_t i = 0; s->socket.listener >= 0 && i < CONTROL_CLIENTS_MAX; i++) {
        add(&watch, s->socket.clients[i].fd);
    }
    for (size_t i = 0; i < s->attached.len; i++) {
        add(&watch, s->attached.items[i].has_ended ? -1 : s->attached.items[i].pidfd);
    }
    const int ready = poll(watch.items, watch.count, (int)sleep_ms); // the loop looks at all
    for (size_t i = 0; i < joining; i++) {
        if (watch.items[i].revents != 0) { // the clock's thread answers
            session_clock_go_on(&s->clock);
        }
    }
    return ready != 0;
}

void recorder_rest_begin_pass(struct recorder_state *s)
{
    if (!s->rest.is_resting) {
        session_clock_set(&s->clock);
    } else if (!session_clock_rest(&s->clock)) {
        session_clock_go_on(&s->clock); // a confined thread cannot wake the clock's
        s->rest.is_resting = false;
        s->rest.quiet_since_ms = session_clock_now(&s->clock);
    }
}

// Sleep, and look meanwhile whether a thread that cannot wake the clock's has ended the rest.
static void sleep_for(struct recorder_state *s, uint64_t sleep_ms, uint64_t now_ms)
{
    const uint64_t rested_ms = excess_u64(now_ms, s->rest.began_ms);
    const uint64_t look_ms = drain_has_confined(&s->drain)
                                 ? max_u64(rested_ms / REST_LOOKS, CONFINED_LOOK_MS)
                                 : sleep_ms;
    while (!poll_all(s, min_u64(sleep_ms, look_ms)) && sleep_ms > look_ms) {
        sleep_ms -= look_ms;
        recorder_rest_begin_pass(s);
        if (!s->rest.is_resting) {
            return;
        }
    }
}

static void wake_up(struct recorder_state *s, uint64_t now_ms)
{
    s->rest.quiet_since_ms = now_ms;
    s->rest.busy_passes++;
    if (s->rest.is_resting) {
        s->rest.is_resting = false;
        session_clock_go_on(&s->clock);
    }
}

void recorder_rest_serve(struct recorder_state *s)
{
    recorder_rest_begin_pass(s);
    struct watch watch = {0};
    add_joining(&watch, s);
    if (s->rest.is_resting && poll(watch.items, watch.count, 0) > 0) {
        wake_up(s, session_clock_now(&s->clock)); // the clock's thread answers
    }
}

bool recorder_rest_sleep(struct recorder_state *s, bool is_busy, uint64_t now_ms)
{
    struct recorder_rest *rest = &s->rest;
    if (is_busy || !is_quiet(s)) {
        wake_up(s, now_ms);
    } else if (!rest->is_resting && !rest->has_read && now_ms >= rest->quiet_since_ms + QUIET_MS) {
        rest->is_resting = session_clock_rest(&s->clock);
        rest->began_ms = now_ms;
    }
    proc_sampler_set_rest(&s->sampler, rest->is_resting, now_ms);
    s->memory_snapshots.is_resting = proc_sampler_is_at_rest(&s->sampler);
    if (rest->is_resting && rest->has_read) {
        recorder_rest_begin_pass(s);
        now_ms = session_clock_now(&s->clock);
    }
    if (rest->is_resting) {
        // A snapshot of this pass is judged by what another one finds.
        const bool has_settled =
            now_ms >= rest->began_ms + SETTLE_MS && !(rest->has_read && s->unjudged_ms != 0);
        if (has_settled) { // nothing was under way at the latest snapshot
            recorder_breakdown_judge_now(s);
        }
        sleep_for(s, has_settled ? sleep_ms_of(s, now_ms) : SETTLE_MS, now_ms);
    }
    rest->has_read = false;
    return rest->is_resting;
}

void recorder_rest_end(struct recorder_state *s)
{
    wake_up(s, session_clock_now(&s->clock));
}
