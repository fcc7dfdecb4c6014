// SPDX-License-Identifier: MIT
// recorder_join: the recorder's part of attaching to processes while others are recorded. See
// recorder_state.h.
//
// A joining process takes one step after another (attach_step.h), and the loop does between them
// what concerns the recording:
//
//   opening -> described -> beginning -> listed among the attached ones, searched for late modules
//
// A process that does not come to the end of a step is left: nothing waits for it.
#include <stdlib.h>
#include <string.h>

#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "recorder/recorder_state.h"

enum {
    LEFT_MAX = 32,     // threads that do not come back
    SETTLED_MAX = 256, // processes whose result is remembered until it is asked for
};

static struct attach_options options_of(const struct recorder_state *s)
{
    return (struct attach_options){.names = s->options->allocator_names,
                                   .plain_modules = s->plain_modules,
                                   .reads_python = s->options->reads_python};
}

static enum err prepare(struct recorder_state *s)
{
    s->plain_modules =
        s->plain_modules != NULL ? s->plain_modules : calloc(1, sizeof(*s->plain_modules));
    return s->plain_modules != NULL ? ERR_OK : ERR_NO_MEMORY;
}

struct attach_step *recorder_join_step(struct recorder_state *s,
                                       enum attach_step_kind kind,
                                       int pid,
                                       struct attach *attach,
                                       bool is_urgent)
{
    if (prepare(s) != ERR_OK) {
        return NULL;
    }
    struct attach_step wanted = {.kind = kind,
                                 .pid = pid,
                                 .attach = attach,
                                 .options = options_of(s),
                                 .session = s->session.memfd >= 0 ? &s->session : NULL};
    wanted.options.is_urgent = is_urgent;
    return attach_step_start(&wanted);
}

enum err recorder_join_open(struct recorder_state *s, int pid, bool is_urgent)
{
    struct joining joining = {.pid = pid,
                              .start = proc_file_start(pid),
                              .pidfd = -1,
                              .is_initial = !is_urgent,
                              .attach = calloc(1, sizeof(*joining.attach))};
    if (joining.attach == NULL || joining_vec_reserve(&s->joining, 1) != ERR_OK) {
        free(joining.attach);
        return ERR_NO_MEMORY;
    }
    joining.step = recorder_join_step(s, STEP_OPEN, pid, joining.attach, is_urgent);
    if (joining.step == NULL) {
        free(joining.attach);
        return ERR_NO_MEMORY;
    }
    s->joining.items[s->joining.len++] = joining;
    return ERR_OK;
}

void recorder_join_remove(struct recorder_state *s, size_t index)
{
    struct joining *joining = s->joining.items + index;
    if (joining->step != NULL && attach_step_leave(joining->step)) {
        s->left_steps++;
        joining->attach = NULL; // the thread's
    } else {
        attach_step_free(joining->step);
    }
    if (joining->attach != NULL) {
        attach_release(joining->attach);
        free(joining->attach);
    }
    fd_closep(&joining->pidfd);
    s->joining.len--;
    memmove(joining, joining + 1, (s->joining.len - index) * sizeof(*joining));
}

enum err recorder_join_begin(struct recorder_state *s,
                             struct joining *joining,
                             uint64_t now_ms,
                             struct err_info *info)
{
    attach_step_free(joining->step);
    joining->step = NULL;
    TRY(proc_file_watch(joining->pid, &joining->pidfd, info));
    TRY(recorder_attach_describe(s, joining->attach, now_ms));
    joining->is_beginning = true;
    joining->step = recorder_join_step(s, STEP_BEGIN, joining->pid, joining->attach, true);
    return joining->step != NULL ? ERR_OK : ERR_NO_MEMORY;
}

enum err recorder_join_finish(struct recorder_state *s, size_t index)
{
    struct joining *joining = s->joining.items + index;
    const enum err result = joining->step->result;
    struct attached_process process = {
        .attach = joining->attach,
        .pidfd = joining->pidfd,
        .has_joined = !joining->is_initial,
        .has_ended = result != ERR_OK,
    };
    TRY(attached_process_vec_push(&s->attached, process)); // else `joining` still has it
    joining->attach = NULL;
    joining->pidfd = -1;
    recorder_join_remove(s, index);
    if (result == ERR_OK) { // else it is no news what it does not show
        TRY(recorder_attach_log(s, process.attach));
        TRY(recorder_attach_note(s, process.attach));
    }
    recorder_attach_log_stop(s, process.attach, process.attach->hooked_count);
    if (result != ERR_OK) {
        return ERR_OK;
    }
    // Libraries that were loaded between the look and the stop were not announced.
    return recorder_modules_begin(s, s->attached.items + s->attached.len - 1);
}

// The follower asks until there is a result.
static void settle(struct recorder_state *s, const struct joining *joining)
{
    if (s->settled.len >= SETTLED_MAX) {
        s->settled.len = 0; // those that still run are tried again
    }
    const struct settled_process settled = {.pid = joining->pid, .start = joining->start};
    (void)!settled_process_vec_push(&s->settled, settled); // else it is tried again
}

static void
omit(struct recorder_state *s, const struct joining *joining, const struct err_info *trouble)
{
    recorder_attach_omit(s, trouble);
    settle(s, joining);
}

// Do what is due after a step of a process. *out_stays: it takes another one.
static enum err advance(struct recorder_state *s, size_t index, uint64_t now_ms, bool *out_stays)
{
    struct joining *joining = s->joining.items + index;
    const enum err result = joining->step->result;
    struct err_info trouble = joining->step->trouble;
    *out_stays = false;
    if (joining->step->is_known) {
        settle(s, joining);
    } else if (result != ERR_OK && result != ERR_TRUNCATED) {
        omit(s, joining, &trouble);
    }
    if (joining->is_beginning) {
        return recorder_join_finish(s, index);
    }
    if (result == ERR_OK) {
        const enum err err = recorder_join_begin(s, joining, now_ms, &trouble);
        *out_stays = err == ERR_OK;
        if (err == ERR_OK || err == ERR_NO_MEMORY) {
            return err;
        }
        omit(s, joining, &trouble);
    }
    recorder_join_remove(s, index);
    return ERR_OK;
}

enum err recorder_join_is_late(const struct joining *joining, struct err_info *info)
{
    const bool is_held_up =
        joining->step != NULL && attach_step_pace_of(joining->step) == STEP_IS_HELD_UP;
    return err_set(info, ERR_LIMIT,
                   is_held_up ? "process %d does not let cairn read it in time"
                              : "attaching to process %d was not over in time",
                   joining->pid);
}

void recorder_join_give_up(struct recorder_state *s, size_t index)
{
    const struct joining *joining = s->joining.items + index;
    struct err_info late = {0};
    (void)!recorder_join_is_late(joining, &late); // for the text
    omit(s, joining, &late);
    recorder_join_remove(s, index);
}

enum err recorder_join_round(struct recorder_state *s, uint64_t now_ms)
{
    for (size_t i = 0; i < s->joining.len;) {
        bool stays = true;
        if (attach_step_is_over(s->joining.items[i].step)) {
            TRY(advance(s, i, now_ms, &stays));
        } else if (attach_step_is_late(s->joining.items[i].step)) {
            recorder_join_give_up(s, i);
            stays = false;
        }
        i += stays;
    }
    return ERR_OK;
}

static bool take_settled(struct recorder_state *s, int pid)
{
    const uint64_t start = proc_file_start(pid);
    for (size_t i = 0; i < s->settled.len; i++) {
        if (s->settled.items[i].pid == pid && s->settled.items[i].start == start) {
            s->settled.items[i] = s->settled.items[--s->settled.len];
            return true;
        }
    }
    return false;
}

static bool is_joining(const struct recorder_state *s, int pid)
{
    for (size_t i = 0; i < s->joining.len; i++) {
        if (s->joining.items[i].pid == pid) {
            return true;
        }
    }
    return false;
}

static bool is_attached(const struct recorder_state *s, int pid)
{
    for (size_t i = 0; i < s->attached.len; i++) {
        const struct attached_process *process = s->attached.items + i;
        if (!process->has_ended && process->attach->inject.target.pid == pid) {
            return true;
        }
    }
    return false;
}

enum err recorder_attach_join(struct recorder_state *s,
                              int pid,
                              enum join_result *out,
                              struct err_info *info)
{
    *out = JOIN_KNOWN;
    if (is_attached(s, pid) || take_settled(s, pid)) {
        return ERR_OK;
    }
    *out = JOIN_LATER;
    if (is_joining(s, pid)) {
        return ERR_OK;
    }
    if (s->left_steps >= LEFT_MAX) {
        return err_set(info, ERR_LIMIT,
                       "%d processes did not let cairn read them, so it attaches to no other one",
                       (int)LEFT_MAX);
    }
    return recorder_join_open(s, pid, true);
}
