// SPDX-License-Identifier: MIT
// recorder_modules: the recorder's part of hooking allocators in libraries that processes with the
// agent load later. See recorder_state.h.
//
// The process waits in its dlopen (target/producer/exec_note.h) until it is answered. Notes are
// hostile: only processes that are attached to, and those that map the session and have our hooks,
// are looked at.
#include <unistd.h>

#include "base/sys.h"
#include "recorder/processes/pid_lookup.h"
#include "recorder/recorder_state.h"

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
static enum err tell(struct recorder_state *s,
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
    TRY(recorder_attach_tell(s, attach));
    return recorder_attach_note(s, attach);
}

enum err
recorder_modules_search(struct recorder_state *s, struct attach *attach, bool *out_is_hooked)
{
    const struct attach_options options = {.names = s->options->allocator_names,
                                           .plain_modules = &s->plain_modules};
    struct err_info trouble = {0};
    const size_t before = attach->hooked_count;
    const enum err err = attach_late(attach, &options, &trouble);
    *out_is_hooked = err == ERR_OK;
    TRY(tell(s, attach, attach->inject.target.pid, err, &trouble));
    if (attach->hooked_count > before) {
        recorder_attach_tell_stop(s, attach, attach->hooked_count - before);
    }
    return ERR_OK;
}

// A forked child has copies of the hooks, and loads libraries of its own.
static enum err search_copy(struct recorder_state *s, int pid, bool *out_is_hooked)
{
    const struct attach_options options = {.names = s->options->allocator_names,
                                           .plain_modules = &s->plain_modules};
    struct err_info trouble = {0};
    struct attach copy;
    const enum err err = attach_late_copy(&copy, pid, &options, &trouble);
    *out_is_hooked = err == ERR_OK;
    const enum err result = tell(s, &copy, pid, err, &trouble);
    if (err == ERR_OK) {
        attach_release(&copy);
    }
    return result;
}

// pid 0: it is one of them.
static enum err search_process(struct recorder_state *s, pid_t pid, bool *out_is_hooked)
{
    bool is_found = false;
    for (size_t i = 0; i < s->attached.len; i++) {
        struct attach *attach = s->attached.items[i].attach;
        if (attach->is_patched && (pid == 0 || attach->inject.target.pid == pid)) {
            is_found = true;
            TRY(recorder_modules_search(s, attach, out_is_hooked));
        }
    }
    const bool is_copy =
        !is_found && pid > 1 && pid != getpid() && pid_lookup_may_map(pid, s->session.memfd);
    return is_copy ? search_copy(s, pid, out_is_hooked) : ERR_OK;
}

enum err recorder_modules_round(struct recorder_state *s)
{
    struct loaded_note_vec *loaded = &s->unrecorded.loaded;
    enum err err = ERR_OK;
    for (size_t i = 0; i < loaded->len; i++) {
        bool is_hooked = false;
        err = err == ERR_OK ? search_process(s, loaded->items[i].pid, &is_hooked) : err;
        answer(loaded->items + i, is_hooked);
    }
    loaded_note_vec_clear(loaded);
    return err;
}
