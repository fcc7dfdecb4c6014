// SPDX-License-Identifier: MIT
// recorder_aside: the recorder's part of work aside (aside/aside.h). See recorder_state.h.
//
// The loop does one thing after another, and some of them read processes that may not let
// themselves be read. While such work runs on its own thread, the processes that wait for the
// recorder are served here: their lanes are read, what they load is hooked, what they execute is
// followed. Work aside does not begin other work aside.
#include <fcntl.h>
#include <stdlib.h>

#include "base/clock.h"
#include "host/os/file.h"
#include "recorder/processes/pending_processes.h"
#include "recorder/processes/pid_lookup.h"
#include "recorder/recorder_state.h"

enum {
    TURN_MS = 1,          // between two looks at the lanes
    REST_TURN_MS = 8,     // while nothing is recorded: most work is over before
    HELD_UP_MS = 10000,   // some ten times what a long map takes
    LIMIT_MS = 60000,     // also of work that could go on
    LAST_LIMIT_MS = 300,  // when recording ends
    LEFT_ASIDE_MAX = 128, // threads that do not come back
};

// Do what processes may wait for. A failure is seen in the next turn of the loop.
static void serve(struct recorder_state *s)
{
    const uint64_t begun_ns = clock_thread_cpu_ns();
    recorder_rest_serve(s);
    const uint64_t now_ms = session_clock_now(&s->clock);
    recorder_take_signals(s);
    if (!s->is_answering) {
        recorder_control_answer(s);
    }
    s->is_stopped = s->is_stopped || run_control_is_over(&s->control, now_ms);
    (void)!recorder_drain(s);
    if (s->options->follow_children) {
        pid_order_look(&s->pending.order, clock_monotonic_ms());
    }
    (void)!unrecorded_list_take(&s->unrecorded, &s->aggregator, &s->session, now_ms);
    (void)!recorder_modules_round(s);
    (void)!recorder_join_round(s, now_ms);
    (void)!recorder_follow_round(s, now_ms);
    s->served_ns += clock_thread_cpu_ns() - begun_ns;
}

static void note_left(struct recorder_state *s)
{
    s->left_asides++;
    if (s->left_asides == LEFT_ASIDE_MAX) {
        recorder_log(s, "warning: too many processes do not let cairn read them: from now on the "
                        "resident memory of no process is recorded");
    }
}

// By the thread that waits for further work, or by a new one.
static struct aside *start(struct recorder_state *s, const struct aside_work *work)
{
    struct aside *aside = s->waiting_aside;
    if (aside == NULL) {
        return aside_start(work);
    }
    s->waiting_aside = NULL;
    aside_again(aside, work);
    return aside;
}

enum err recorder_do_aside(struct recorder_state *s, const struct aside_work *work)
{
    struct aside *aside = s->left_asides < LEFT_ASIDE_MAX ? start(s, work) : NULL;
    if (aside == NULL) {
        work->release(work->context);
        return ERR_IO;
    }
    s->rest.has_read = true;
    const bool is_ending =
        s->is_stopped || (s->clock.is_running && session_is_over(s->session.header));
    const uint64_t end_ms = clock_monotonic_ms() + (is_ending ? LAST_LIMIT_MS : LIMIT_MS);
    const uint64_t look_ms = clock_monotonic_ms() + HELD_UP_MS;
    s->has_work_aside = true;
    while (!aside_await(aside, (s->rest.is_resting ? REST_TURN_MS : TURN_MS) * NS_PER_MS)) {
        if (s->clock.is_running && !is_ending) {
            serve(s);
        }
        const uint64_t now_ms = clock_monotonic_ms();
        const bool is_late = now_ms > end_ms ||
                             (now_ms > look_ms && aside_held_up_ns(aside) > HELD_UP_MS * NS_PER_MS);
        if ((is_late || (s->is_stopped && !is_ending)) && aside_leave(aside)) {
            s->has_work_aside = false;
            note_left(s);
            return s->is_stopped || is_ending ? ERR_CANCELLED : ERR_LIMIT;
        }
    }
    s->has_work_aside = false;
    aside_free(s->waiting_aside); // there is none: work aside does not begin other work aside
    s->waiting_aside = aside;
    return ERR_OK;
}

// Return the image of a process, NULL if none has joined.
static struct aggregator_process *process_of(const struct recorder_state *s, pid_t pid)
{
    for (uint32_t slot = 0; slot < s->drain.slot_count; slot++) {
        const struct drain_process *process = s->drain.processes + slot;
        if (process->aggregator != NULL && !process->is_dead && process->pid == pid) {
            return process->aggregator;
        }
    }
    return NULL;
}

void recorder_note_unread(struct recorder_state *s,
                          struct aggregator_process *process,
                          pid_t pid,
                          enum err err)
{
    if (err == ERR_LIMIT && process != NULL && !process->is_unread) {
        process->is_unread = true;
        s->slow_count++;
        recorder_log(s,
                     "warning: process %d does not let cairn read its memory map in time: from now "
                     "on its resident memory is not recorded",
                     (int)pid);
    }
}

enum err recorder_read_aside(void *context, uint32_t pid, const struct aside_work *work)
{
    struct recorder_state *s = context;
    const enum err err = recorder_do_aside(s, work);
    recorder_note_unread(s, process_of(s, (pid_t)pid), (pid_t)pid, err);
    return err;
}

struct map_look {
    pid_t pid;
    int session_memory; // owned
    bool may_map;
};

static void map_look_free(void *context)
{
    struct map_look *look = context;
    fd_closep(&look->session_memory);
    free(look);
}

static void look_at_map(void *context)
{
    struct map_look *look = context;
    look->may_map = pid_lookup_may_map(look->pid, look->session_memory);
}

bool recorder_may_map(void *context, pid_t pid)
{
    struct recorder_state *s = context;
    struct aggregator_process *process = process_of(s, pid);
    const bool is_unread = process != NULL && process->is_unread;
    struct map_look *look = is_unread ? NULL : malloc(sizeof(*look));
    if (look == NULL) {
        return true;
    }
    *look = (struct map_look){
        .pid = pid, .session_memory = fcntl(s->session.memfd, F_DUPFD_CLOEXEC, 0), .may_map = true};
    const struct aside_work work = {.run = look_at_map, .release = map_look_free, .context = look};
    const enum err err = recorder_do_aside(s, &work);
    recorder_note_unread(s, process, pid, err);
    const bool may_map = err != ERR_OK || look->may_map;
    if (err == ERR_OK) {
        map_look_free(look);
    }
    return may_map;
}

static uint64_t joins_of(const struct recorder_state *s)
{
    // Relaxed: only compared.
    return atomic_load_explicit(&s->session.header->join_count, memory_order_relaxed);
}

bool recorder_none_is_pending(struct recorder_state *s)
{
    const uint64_t joins = joins_of(s);
    const uint64_t now_ms = clock_monotonic_ms();
    if (!pending_wait_is_due(&s->pending, now_ms)) {
        return s->pending.is_certain;
    }
    const struct pending_marks marks = {.session = s->session.environment,
                                        .memory = s->session.memfd};
    struct pending_search *search =
        pending_search_new(&s->pending, &marks, &s->unrecorded_tree.known, now_ms);
    const struct aside_work work = {
        .run = pending_search_run, .release = pending_search_free, .context = search};
    const enum err err = search != NULL ? recorder_do_aside(s, &work) : ERR_NO_MEMORY;
    if (err == ERR_CANCELLED) {
        return true; // the user does not wait for it
    }
    const bool is_over = pending_wait_take(&s->pending, err == ERR_OK ? search : NULL);
    if (err == ERR_OK) {
        pending_search_free(search);
    }
    if (is_over &&
        joins_of(s) != joins) { // meanwhile: what it does is read, and the wait begins anew
        s->pending.unjoined_count = 0;
        return false;
    }
    return is_over;
}
