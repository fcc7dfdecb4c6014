// SPDX-License-Identifier: MIT
// recorder_follow: the recorder's part of following execs (exec_follow.h). See recorder_state.h.
//
// A program that is followed is attached to like one of the user's choice, and replaces the former
// program of its process. It stays in the list until it has ended.
//
// A program may execute another one by a system call of its own, which no hook sees. Samples of its
// memory show that the process has another image then. If that does not map the session's memory,
// and does not join within LATE_JOIN_MS, it is counted as not recorded, and the earlier one has
// ended when it was last seen, or later. Until then it may be one whose loader has not finished:
// its joining dates the end.
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "aggregate/aggregator_process.h"
#include "base/minmax.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "host/text/format.h"
#include "recorder/aside/aside.h"
#include "recorder/ingest/drain_time.h"
#include "recorder/processes/pid_lookup.h"
#include "recorder/recorder_state.h"
#include "session/exec_check.h"

enum {
    END_ROUNDS = 2, // of the loop, in which the drain hears of a process that has joined and ended
    LATE_JOIN_MS = 5000, // so long a program with many libraries takes on a busy machine
};

void recorder_follow_begin(struct recorder_state *s)
{
    s->follow.session = &s->session;
    s->follow.names = s->options->allocator_names;
    s->unrecorded.may_follow = (s->session.header->flags & SESSION_FOLLOW_EXECS) != 0;
}

// Forget that a process was going to join: its program has ended without an allocation, after
// alive_ms and by dead_ms.
static enum err forget(struct recorder_state *s, int pid, uint64_t alive_ms, uint64_t dead_ms)
{
    struct aggregator_process *process = awaited_processes_take(&s->drain.awaited, pid);
    if (process == NULL) {
        return ERR_OK;
    }
    const uint64_t end_ms = max_u64(alive_ms, process->record.start_ms);
    const struct aggregator_process_ending ending = {.end_ms = end_ms,
                                                     .error_ms = excess_u64(dead_ms, end_ms)};
    return aggregator_process_end(&s->aggregator, process, &ending);
}

// Put the program into the list, in place of the former one of its process.
static enum err list(struct recorder_state *s, struct attach *attach)
{
    const int pid = attach->inject.target.pid;
    for (size_t i = 0; i < s->attached.len; i++) {
        struct attached_process *process = s->attached.items + i;
        if (process->attach->inject.target.pid == pid && !process->has_ended) {
            recorder_modules_leave(s, process);
            attach_release(process->attach); // its memory is gone
            free(process->attach);
            process->attach = attach;
            return ERR_OK;
        }
    }
    const struct attached_process process = {
        .attach = attach, .pidfd = (int)syscall(SYS_pidfd_open, pid, 0), .is_followed = true};
    return attached_process_vec_push(&s->attached, process);
}

// Make a held program a part of the recording, and let it begin.
static enum err accept_one(struct recorder_state *s, struct followed_exec *item, uint64_t now_ms)
{
    struct attach *attach = item->attach;
    const int pid = attach->inject.target.pid;
    const struct drain_replacement replacement = {
        .pid = pid, .joins = item->wanted.exec.joins, .time_ms = item->wanted.exec.time_ms};
    enum err err = drain_end_replaced(&s->drain, &replacement, now_ms);
    err = err == ERR_OK ? forget(s, pid, now_ms, now_ms) : err;
    err = err == ERR_OK ? recorder_attach_describe(s, attach, now_ms) : err;
    err = err == ERR_OK ? recorder_attach_log(s, attach) : err;
    err = err == ERR_OK ? recorder_attach_note(s, attach) : err;
    err = err == ERR_OK ? list(s, attach) : err;
    if (err == ERR_OK) {
        item->attach = NULL;
    }
    exec_follow_accept(item);
    return err;
}

static enum err take_wanted(struct recorder_state *s)
{
    struct wanted_exec_vec *wanted = &s->unrecorded.wanted;
    for (size_t i = 0; i < wanted->len; i++) {
        TRY(exec_follow_take(&s->follow, wanted->items + i));
    }
    wanted_exec_vec_clear(wanted);
    exec_follow_start(&s->follow);
    return ERR_OK;
}

static enum err visit_items(struct recorder_state *s, uint64_t now_ms)
{
    for (size_t i = 0; i < s->follow.items.len;) {
        struct followed_exec *item = s->follow.items.items[i];
        const enum follow_stage stage = exec_follow_stage(item);
        if (stage == FOLLOW_HELD && item->attach != NULL) {
            TRY(accept_one(s, item, now_ms));
        }
        if (stage != FOLLOW_OVER) {
            i++;
            continue;
        }
        struct unrecorded_exec exec = item->wanted.exec;
        const bool is_unrecorded = item->has_failed && !item->was_taken_back;
        exec.pid = item->start.makes_child ? 0 : item->start.pid;
        exec.heard_ms = now_ms;
        exec_follow_remove(&s->follow, i);
        if (is_unrecorded) {
            TRY(unrecorded_list_add(&s->unrecorded, &s->aggregator, &exec));
        }
    }
    return ERR_OK;
}

// Find out whether the process has ended, and note when.
static void look_whether_ended(const struct recorder_state *s,
                               struct attached_process *process,
                               uint64_t now_ms)
{
    struct pollfd end = {.fd = process->pidfd, .events = POLLIN};
    process->has_ended = process->has_ended || poll(&end, 1, 0) == 1 || process->pidfd < 0;
    if (!process->has_ended) {
        process->alive_ms = now_ms;
    } else if (process->dead_ms == 0) {
        process->dead_ms = drain_process_now_ms(&s->drain, now_ms);
    }
}

// End the process in the recording if it has not joined, once the drain has heard of all that have.
// The one that the user chose stays in the list for good.
static enum err leave_ended(struct recorder_state *s, uint64_t now_ms)
{
    for (size_t i = 0; i < s->attached.len;) {
        struct attached_process *process = s->attached.items + i;
        look_whether_ended(s, process, now_ms);
        const bool is_over = process->has_ended && process->search == NULL &&
                             process->end_rounds <= END_ROUNDS &&
                             process->end_rounds++ == END_ROUNDS;
        if (is_over) {
            TRY(forget(s, process->attach->inject.target.pid, process->alive_ms, process->dead_ms));
        }
        if (!is_over || (!process->is_followed && !process->has_joined)) {
            i++;
            continue;
        }
        attach_release(process->attach);
        free(process->attach);
        fd_closep(&process->pidfd);
        *process = s->attached.items[--s->attached.len];
    }
    return ERR_OK;
}

void recorder_follow_note_image(struct recorder_state *s,
                                uint32_t slot,
                                uint64_t image,
                                uint64_t now_ms)
{
    if (slot >= SESSION_MAX_PROCESSES) {
        return; // it has not joined yet
    }
    struct drain_process *process = s->drain.processes + slot;
    const bool is_known = image != 0 && process->image != 0;
    process->has_other_image = is_known && image != process->image;
    if (image != 0 && !process->has_other_image) {
        process->image = image;
        process->image_ms = now_ms;
    }
}

struct image_look {
    pid_t pid;
    int session_memory; // owned
    bool may_map;
    char program[PATH_MAX]; // "": not known
};

static void image_look_free(void *context)
{
    struct image_look *look = context;
    fd_closep(&look->session_memory);
    free(look);
}

static void look_at_image(void *context)
{
    struct image_look *look = context;
    look->may_map = pid_lookup_may_map(look->pid, look->session_memory);
    (void)proc_file_executable(look->pid, look->program);
}

// Whether an exec of the process is known by a note.
static bool is_noted(const struct recorder_state *s, pid_t pid)
{
    bool is_noted = false;
    for (size_t i = 0; i < s->unrecorded.recent.len; i++) {
        is_noted = is_noted || s->unrecorded.recent.items[i].pid == pid;
    }
    for (size_t i = 0; i < s->follow.items.len; i++) {
        const struct followed_exec *item = s->follow.items.items[i];
        is_noted = is_noted || item->wanted.exec.pid == pid;
    }
    return is_noted;
}

// The functions of the process are those of another program: there is nothing to restore.
static void forget_functions(struct recorder_state *s, pid_t pid, const char *program)
{
    for (size_t i = 0; i < s->attached.len; i++) {
        struct attached_process *process = s->attached.items + i;
        if (process->attach->inject.target.pid == pid) {
            recorder_modules_leave(s, process);
            process->attach->is_patched = false;
            process->has_ended = true;
            recorder_log(s,
                         "warning: process %d has executed '%s' by a system call of its own; it "
                         "is no longer recorded",
                         (int)pid, program);
        }
    }
}

static enum err take_silent(
    struct recorder_state *s, uint32_t slot, uint64_t joins, const char *program, uint64_t now_ms)
{
    struct drain_process *process = s->drain.processes + slot;
    struct unrecorded_exec exec = {.number = UINT64_MAX, // no note has it
                                   .joins = joins,
                                   .time_ms = process->image_ms,
                                   .heard_ms = now_ms + LATE_JOIN_MS,
                                   .pid = process->pid,
                                   .obstacle = EXEC_INLINE};
    TRY(string_table_intern_text(&s->aggregator.strings, program, &exec.program));
    process->other_image_ms = drain_process_now_ms(&s->drain, now_ms);
    forget_functions(s, exec.pid, program);
    return unrecorded_list_add(&s->unrecorded, &s->aggregator, &exec);
}

// Find out whether a process has executed another program, and count that.
static enum err look_for_exec(struct recorder_state *s, uint32_t slot, uint64_t now_ms)
{
    struct drain_process *process = s->drain.processes + slot;
    const struct aggregator_process *before = process->aggregator;
    // Relaxed: an image that joins later has a number from there on.
    const uint64_t joins =
        atomic_load_explicit(&s->session.header->join_count, memory_order_relaxed);
    struct image_look *look = calloc(1, sizeof(*look));
    if (look == NULL) {
        return ERR_NO_MEMORY;
    }
    look->pid = process->pid;
    look->session_memory = fcntl(s->session.memfd, F_DUPFD_CLOEXEC, 0);
    const struct aside_work work = {
        .run = look_at_image, .release = image_look_free, .context = look};
    process->has_other_image = false; // a later sample says so again
    const enum err read = recorder_do_aside(s, &work);
    if (read != ERR_OK) {
        return ERR_OK; // it does not let itself be read now
    }
    enum err err = ERR_OK;
    if (process->aggregator != before || process->is_dead) {
        // it has ended meanwhile
    } else if (look->may_map) {
        process->image = 0; // it has moved its arguments
    } else {
        err = take_silent(s, slot, joins, look->program, now_ms);
    }
    image_look_free(look);
    return err;
}

// End the images whose successors have not joined for that time.
static enum err end_silent(struct recorder_state *s, uint64_t late_ms, uint64_t now_ms)
{
    for (uint32_t slot = 0; slot < s->drain.slot_count; slot++) {
        const struct drain_process *process = s->drain.processes + slot;
        if (process->aggregator != NULL && process->other_image_ms != 0 &&
            now_ms >= process->other_image_ms + late_ms) {
            TRY(drain_end_silent(&s->drain, slot, now_ms));
        }
    }
    return ERR_OK;
}

static enum err find_silent(struct recorder_state *s, uint64_t now_ms)
{
    TRY(end_silent(s, LATE_JOIN_MS, now_ms));
    for (uint32_t slot = 0; slot < s->drain.slot_count; slot++) {
        const struct drain_process *process = s->drain.processes + slot;
        if (process->aggregator != NULL && process->has_other_image && !process->is_dead &&
            process->pid > 0 && !is_noted(s, process->pid)) {
            TRY(look_for_exec(s, slot, now_ms));
        }
    }
    return ERR_OK;
}

enum err recorder_follow_round(struct recorder_state *s, uint64_t now_ms)
{
    TRY(find_silent(s, now_ms));
    TRY(take_wanted(s));
    TRY(visit_items(s, now_ms));
    return leave_ended(s, now_ms);
}

uint32_t recorder_follow_running(const struct recorder_state *s)
{
    uint32_t running = (uint32_t)s->follow.items.len;
    for (size_t i = 0; i < s->attached.len; i++) {
        running += s->attached.items[i].is_followed;
    }
    return running;
}

static bool is_living(pid_t pid)
{
    const char state = proc_file_state(pid);
    return state != 'X' && state != 'Z';
}

uint32_t recorder_follow_living(const struct recorder_state *s)
{
    uint32_t living = recorder_follow_running(s);
    for (size_t i = 0; i < s->follow.items.len; i++) {
        const struct followed_exec *item = s->follow.items.items[i];
        // The thread sets start.pid until HELD. An exec of another thread ends the first one.
        const bool has_begun = exec_follow_stage(item) >= FOLLOW_HELD;
        const bool lives = has_begun
                               ? is_living(item->start.pid)
                               : is_living(item->wanted.thread) || is_living(item->wanted.exec.pid);
        living -= !lives;
    }
    return living;
}

enum err recorder_follow_end(struct recorder_state *s)
{
    const uint64_t now_ms = session_clock_now(&s->clock);
    s->unrecorded.may_follow = false;
    enum err err = end_silent(s, 0, drain_process_now_ms(&s->drain, now_ms));
    err = err == ERR_OK ? take_wanted(s) : err;
    uint32_t left = exec_follow_stop(&s->follow, EXEC_FOLLOW_END_MS);
    err = err == ERR_OK ? visit_items(s, now_ms) : err;
    left += exec_follow_finish(&s->follow, EXEC_FOLLOW_END_MS);
    if (left > 0) {
        recorder_log(s, "%s not let cairn follow it in time: what it executes is not recorded",
                     format_things(left, "process does", "processes do").text);
    }
    return err;
}
