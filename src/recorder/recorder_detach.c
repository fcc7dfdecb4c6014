// SPDX-License-Identifier: MIT
// recorder_detach: the recorder's part of letting processes go at the end. See recorder_state.h.
#include <stdint.h>

#include "host/containers/map_u64.h"
#include "host/os/process_search.h"
#include "recorder/recorder_state.h"

enum {
    // Looks at a step, a millisecond apart; on a busy machine more, as the step takes longer there:
    END_LOOKS = 3000,   // until a process is let go
    SEARCH_LOOKS = 500, // until a search is over when the recording ends
    SLOW_LOOKS = 100,   // until one is over that takes long already
    ENDS_MAX = 64,      // at one time
};

static int pid_of(const struct attached_process *process)
{
    return process->attach->inject.target.pid;
}

static bool is_attached(const struct recorder_state *s, uint32_t pid)
{
    for (size_t i = 0; i < s->attached.len; i++) {
        if ((uint32_t)pid_of(s->attached.items + i) == pid) {
            return true;
        }
    }
    return false;
}

// List the processes that have joined or that we have attached to, and what they have started. A
// child that never allocated, and whose parent has ended, is not found.
static enum err list_family(const struct recorder_state *s, struct u32_vec *out)
{
    CLEANUP(map_u64_release) struct map_u64 seen = {0};
    for (size_t i = 0; i < s->attached.len; i++) {
        TRY(u32_vec_push(out, (uint32_t)pid_of(s->attached.items + i)));
    }
    for (uint32_t slot = 0; slot < s->drain.slot_count; slot++) {
        const struct drain_process *process = s->drain.processes + slot;
        if (process->aggregator != NULL && !process->is_dead && process->pid > 0) {
            TRY(u32_vec_push(out, (uint32_t)process->pid));
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < out->len; i++) { // it grows meanwhile
        const uint32_t pid = out->items[i];
        if (map_u64_find(&seen, pid) == NULL) {
            TRY(map_u64_put(&seen, pid, 1));
            out->items[kept++] = pid;
            const enum err err = process_search_children((pid_t)pid, out);
            if (err == ERR_NO_MEMORY) { // else it has ended, or cannot be seen now
                return err;
            }
        }
    }
    out->len = kept;
    return ERR_OK;
}

// What ends at one time, so that one process does not delay the others.
struct ending {
    struct attach_step *step; // owned
    size_t index;             // in `attached`; SIZE_MAX: a child
};
DEFINE_VEC(ending_vec, struct ending);

static void log_end(struct recorder_state *s, const struct ending *ending)
{
    const struct attach_step *step = ending->step;
    if (ending->index == SIZE_MAX) {
        if (step->result != ERR_OK) {
            recorder_log(s, "a child process keeps cairn's hooks, which do nothing: %s",
                         err_text(&step->trouble));
        }
        return;
    }
    const struct attached_process *process = s->attached.items + ending->index;
    // It may be in vfork, with a child that waits to be followed until the recording has ended.
    const bool is_for_later = step->result == ERR_LIMIT && !session_is_over(s->session.header);
    if (step->result == ERR_NOT_FOUND || is_for_later) {
        return; // or it has ended by itself, and its hooks with it
    }
    if (step->result != ERR_OK) {
        recorder_log(s, "%s", err_text(&step->trouble));
    } else if (!process->has_ended) {
        recorder_attach_log_stop(s, process->attach, process->attach->hooked_count);
    }
}

// Leave a process that does not let its functions be restored in time.
static void leave(struct recorder_state *s, const struct ending *ending)
{
    const int pid = ending->step->pid;
    if (ending->index != SIZE_MAX) {
        struct attached_process *process = s->attached.items + ending->index;
        process->search = ending->step;
        recorder_modules_leave(s, process);
    } else if (attach_step_leave(ending->step)) {
        s->left_steps++;
    } else {
        attach_step_free(ending->step);
    }
    recorder_log(s, "process %d does not answer in time: it keeps cairn's hooks, which do nothing",
                 pid);
}

// Wait for a step, and record meanwhile. `looks` are left, and counted. Return whether it is over.
static bool await_step(struct recorder_state *s, const struct attach_step *step, uint32_t *looks)
{
    while (!attach_step_await(step, 1) && *looks > 0 && !attach_step_is_late(step)) {
        (*looks)--;
        (void)!recorder_drain(s); // a failure is seen at the last one
    }
    return attach_step_is_over(step);
}

static bool await_search(struct recorder_state *s, const struct attach_step *step)
{
    uint32_t looks = attach_step_pace_of(step) == STEP_IS_HELD_UP ? SLOW_LOOKS : SEARCH_LOOKS;
    return await_step(s, step, &looks);
}

static void await_ends(struct recorder_state *s, struct ending_vec *endings)
{
    uint32_t looks = END_LOOKS; // for all
    for (size_t i = 0; i < endings->len; i++) {
        const struct ending *ending = endings->items + i;
        if (await_step(s, ending->step, &looks)) {
            log_end(s, ending);
            attach_step_free(ending->step);
        } else {
            leave(s, ending);
        }
    }
    endings->len = 0;
}

static void begin_end(struct recorder_state *s,
                      struct ending_vec *endings,
                      enum attach_step_kind kind,
                      int pid,
                      size_t index)
{
    struct attach *attach = index != SIZE_MAX ? s->attached.items[index].attach : NULL;
    struct ending ending = {.index = index};
    if (endings->len >= ENDS_MAX) {
        await_ends(s, endings);
    }
    if (ending_vec_reserve(endings, 1) == ERR_OK) {
        ending.step = recorder_join_step(s, kind, pid, attach, true);
    }
    if (ending.step == NULL) {
        recorder_log(s, "no memory for the recorder: process %d keeps its hooks, which do nothing",
                     pid);
        return;
    }
    endings->items[endings->len++] = ending;
}

// Forked children have copies of the changed functions.
static void leave_children(struct recorder_state *s, struct ending_vec *endings)
{
    CLEANUP(u32_vec_release) struct u32_vec family = {0};
    if (list_family(s, &family) != ERR_OK) {
        recorder_log(s, "no memory for the recorder: child processes keep its hooks, which do "
                        "nothing");
        return;
    }
    for (size_t i = 0; i < family.len; i++) {
        if (!is_attached(s, family.items[i])) {
            begin_end(s, endings, STEP_END_COPY, (int)family.items[i], SIZE_MAX);
        }
    }
    await_ends(s, endings);
}

// One that has just begun is let go like the others.
static void end_joining(struct recorder_state *s)
{
    for (size_t i = s->joining.len; i-- > 0;) {
        const struct joining *joining = s->joining.items + i;
        const bool has_begun =
            joining->step != NULL && joining->is_beginning && await_search(s, joining->step);
        if (has_begun && recorder_join_finish(s, i) == ERR_OK) {
            continue;
        }
        if (joining->step != NULL && attach_step_pace_of(joining->step) != STEP_IS_NEW) {
            recorder_join_give_up(s, i);
        } else {
            recorder_join_remove(s, i);
        }
    }
}

void recorder_attach_end(struct recorder_state *s)
{
    CLEANUP(ending_vec_release) struct ending_vec endings = {0};
    bool was_attached = false;
    urgent_turns_end(&s->urgency.turns); // the steps need the processor, and have no priority
    end_joining(s);
    for (size_t i = 0; i < s->attached.len; i++) {
        struct attached_process *process = s->attached.items + i;
        if (process->search != NULL && !await_search(s, process->search)) {
            recorder_log(s,
                         "process %d does not answer in time: it keeps cairn's hooks, which do "
                         "nothing",
                         process->search->pid);
        }
        recorder_modules_leave(s, process);
        if (process->attach->is_patched) {
            was_attached = true;
            begin_end(s, &endings, STEP_END, pid_of(process), i);
        }
    }
    await_ends(s, &endings);
    if (was_attached) {
        leave_children(s, &endings);
    }
}
