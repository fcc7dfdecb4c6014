// SPDX-License-Identifier: MIT
// recorder_modules: the recorder's part of hooking allocators in libraries that processes with the
// agent load later. See recorder_state.h.
//
// The process waits in its dlopen (target/producer/exec_note.h) until it is answered; the loop
// waits for nothing (attach_step.h). Notes are hostile: only processes that are attached to, and
// those that map the session and have our hooks, are looked at.
#include <stdlib.h>
#include <unistd.h>

#include "base/sys.h"
#include "recorder/recorder_state.h"

enum {
    COPIES_MAX = 8, // that are searched at one time
};

static void answer(const struct loaded_note *loaded, bool is_hooked)
{
    struct exec_note *note = loaded->note;
    uint32_t wanted = EXEC_FOLLOW_WANTED;
    // Relaxed: the answer guards no other data. A process that has not waited counts that.
    (void)atomic_compare_exchange_strong_explicit(&note->follow, &wanted,
                                                  is_hooked ? EXEC_FOLLOW_TRACED : EXEC_FOLLOW_NO,
                                                  memory_order_relaxed, memory_order_relaxed);
    (void)sys_futex_wake(&note->follow, 1); // it may not sleep yet
    // Release: pairs with the acquire of the next claim.
    atomic_store_explicit(&note->state, EXEC_NOTE_FREE, memory_order_release);
}

// Say what came of the search. A process that has ended needs nothing.
static enum err log_search(struct recorder_state *s,
                           const struct attach *attach,
                           int pid,
                           enum err result,
                           const struct err_info *trouble)
{
    if (result != ERR_OK && result != ERR_NOT_FOUND) {
        recorder_log(s,
                     "warning: allocators in libraries that process %d has loaded are not "
                     "recorded: %s",
                     pid, err_text(trouble));
    }
    if (result != ERR_OK) {
        return ERR_OK;
    }
    TRY(recorder_attach_log(s, attach));
    return recorder_attach_note(s, attach);
}

static void end_wait(struct module_wait *wait, bool is_hooked)
{
    if (wait == NULL) {
        return;
    }
    wait->is_hooked = is_hooked;
    if (--wait->searches == 0) {
        answer(&wait->loaded, wait->is_hooked);
        free(wait);
    }
}

enum err recorder_modules_begin(struct recorder_state *s, struct attached_process *process)
{
    process->hooked_before = process->attach->hooked_count;
    process->search = recorder_join_step(s, STEP_SEARCH, process->attach->inject.target.pid,
                                         process->attach, true);
    return process->search != NULL ? ERR_OK : ERR_NO_MEMORY;
}

void recorder_modules_leave(struct recorder_state *s, struct attached_process *process)
{
    if (process->search == NULL) {
        return;
    }
    const int pid = process->search->pid;
    struct attach *empty = calloc(1, sizeof(*empty));
    if (empty == NULL || !attach_step_leave(process->search)) {
        free(empty);
        attach_step_free(process->search); // waits for it, for lack of memory
    } else {
        empty->inject.target.pid = pid;
        process->attach = empty;
        s->left_steps++;
    }
    process->search = NULL;
    end_wait(process->wait, false);
    process->wait = NULL;
}

static enum err finish_search(struct recorder_state *s, struct attached_process *process)
{
    const struct attach_step *step = process->search;
    const uint64_t functions = process->attach->hooked_count - process->hooked_before;
    const enum err err = log_search(s, process->attach, step->pid, step->result, &step->trouble);
    if (err == ERR_OK && functions > 0) {
        recorder_attach_log_stop(s, process->attach, functions);
    }
    end_wait(process->wait, step->result == ERR_OK);
    process->wait = NULL;
    attach_step_free(process->search);
    process->search = NULL;
    return err;
}

static void log_late(const struct recorder_state *s, int pid)
{
    recorder_log(s,
                 "warning: process %d does not let cairn read its libraries in time; it is no "
                 "longer recorded",
                 pid);
}

static enum err finish_searches(struct recorder_state *s)
{
    for (size_t i = 0; i < s->attached.len; i++) {
        struct attached_process *process = s->attached.items + i;
        if (process->search != NULL && attach_step_is_over(process->search)) {
            TRY(finish_search(s, process));
        } else if (process->search != NULL && attach_step_is_late(process->search)) {
            log_late(s, process->search->pid);
            recorder_modules_leave(s, process);
        }
    }
    return ERR_OK;
}

// A forked child has copies of the hooks, and loads libraries of its own.
static void remove_copy(struct recorder_state *s, size_t index)
{
    struct searched_copy *copy = s->copies.items + index;
    if (attach_step_leave(copy->step)) {
        s->left_steps++;
        end_wait(copy->wait, false);
    } else {
        end_wait(copy->wait, copy->step->result == ERR_OK);
        attach_step_free(copy->step);
        attach_release(copy->attach);
        free(copy->attach);
    }
    *copy = s->copies.items[--s->copies.len];
}

static enum err finish_copies(struct recorder_state *s)
{
    for (size_t i = 0; i < s->copies.len;) {
        const struct searched_copy *copy = s->copies.items + i;
        const bool is_over = attach_step_is_over(copy->step);
        if (!is_over && !attach_step_is_late(copy->step)) {
            i++;
            continue;
        }
        if (is_over && !copy->step->is_known) {
            TRY(log_search(s, copy->attach, copy->step->pid, copy->step->result,
                           &copy->step->trouble));
        }
        remove_copy(s, i);
    }
    return ERR_OK;
}

static enum err begin_copy(struct recorder_state *s, pid_t pid, struct module_wait *wait)
{
    struct searched_copy copy = {.attach = calloc(1, sizeof(*copy.attach)), .wait = wait};
    if (copy.attach == NULL || searched_copy_vec_reserve(&s->copies, 1) != ERR_OK) {
        free(copy.attach);
        return ERR_NO_MEMORY;
    }
    copy.step = recorder_join_step(s, STEP_SEARCH_COPY, pid, copy.attach, true);
    if (copy.step == NULL) {
        free(copy.attach);
        return ERR_NO_MEMORY;
    }
    s->copies.items[s->copies.len++] = copy;
    wait->searches++;
    return ERR_OK;
}

// pid 0: it is one of them.
static bool is_meant(const struct attached_process *process, pid_t pid)
{
    // The process is not searched: its thread would be writing.
    return process->search == NULL && process->attach->is_patched &&
           (pid == 0 || process->attach->inject.target.pid == pid);
}

static bool must_wait(const struct recorder_state *s, pid_t pid)
{
    for (size_t i = 0; i < s->attached.len; i++) {
        const struct attached_process *process = s->attached.items + i;
        if (process->search != NULL && (pid == 0 || process->search->pid == pid)) {
            return true;
        }
    }
    return s->copies.len >= COPIES_MAX;
}

static enum err search_for(struct recorder_state *s, struct module_wait *wait)
{
    const pid_t pid = wait->loaded.pid;
    for (size_t i = 0; i < s->attached.len; i++) {
        struct attached_process *process = s->attached.items + i;
        if (is_meant(process, pid)) {
            TRY(recorder_modules_begin(s, process));
            process->wait = wait;
            wait->searches++;
        }
    }
    return wait->searches == 1 && pid > 1 && pid != getpid() ? begin_copy(s, pid, wait) : ERR_OK;
}

static enum err begin_wait(struct recorder_state *s, const struct loaded_note *loaded)
{
    struct module_wait *wait = calloc(1, sizeof(*wait));
    if (wait == NULL) {
        answer(loaded, false);
        return ERR_NO_MEMORY;
    }
    *wait = (struct module_wait){.loaded = *loaded, .searches = 1};
    const enum err err = search_for(s, wait);
    end_wait(wait, false); // the result of a search comes later
    return err;
}

enum err recorder_modules_round(struct recorder_state *s)
{
    struct loaded_note_vec *loaded = &s->unrecorded.loaded;
    enum err err = finish_searches(s);
    err = err == ERR_OK ? finish_copies(s) : err;
    size_t kept = 0;
    for (size_t i = 0; i < loaded->len; i++) {
        if (err == ERR_OK && must_wait(s, loaded->items[i].pid)) {
            loaded->items[kept++] = loaded->items[i];
        } else if (err == ERR_OK) {
            err = begin_wait(s, loaded->items + i);
        } else {
            answer(loaded->items + i, false);
        }
    }
    loaded->len = kept;
    return err;
}

void recorder_modules_release(struct recorder_state *s)
{
    for (size_t i = 0; i < s->attached.len; i++) {
        recorder_modules_leave(s, s->attached.items + i);
    }
    while (s->copies.len > 0) {
        remove_copy(s, s->copies.len - 1);
    }
    searched_copy_vec_release(&s->copies);
}
