// SPDX-License-Identifier: MIT
// recorder_attach: the recorder's part of attaching to processes, and of starting a program with
// the agent. See recorder_state.h.
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aggregate/aggregator_process.h"
#include "base/clock.h"
#include "host/containers/map_u64.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "host/os/process_search.h"
#include "recorder/processes/pid_lookup.h"
#include "recorder/recorder_state.h"

static int pid_of(const struct attached_process *process)
{
    return process->attach->inject.target.pid;
}

// Take the next line of *at. Return its length, without its end; -1 after the last line.
static int next_line(const char **at, const char **line)
{
    const size_t len = strcspn(*at, "\n");
    *line = *at;
    *at += len + ((*at)[len] == '\n');
    return **line != '\0' ? (int)len : -1;
}

static void log_lines(const struct recorder_state *s, const char *prefix, const char *lines)
{
    const char *line;
    for (int len; (len = next_line(&lines, &line)) >= 0;) {
        recorder_log(s, "%s%.*s", prefix, len, line);
    }
}

// Say which functions could not be patched, now and in the recording; of a program that runs again
// and again, once.
static enum err tell_unpatched(struct recorder_state *s, const struct attach *attach)
{
    if (attach->unpatched_count == 0) {
        return ERR_OK;
    }
    const char *text = strbuf_text(&attach->unpatched);
    if (strstr(strbuf_text(&s->unpatched), text) != NULL) {
        s->unpatched_count += attach->unpatched_count;
        return ERR_OK;
    }
    recorder_log(s, "warning: calls of functions that cannot be patched are not recorded: %s",
                 text);
    strbuf_printf(&s->unpatched, "%s%s",
                  s->unpatched_count == 0 ? "calls of functions that cannot be patched: " : ", ",
                  text);
    s->unpatched_count += attach->unpatched_count;
    return strbuf_result(&s->unpatched);
}

enum err recorder_attach_tell(struct recorder_state *s, const struct attach *attach)
{
    log_lines(s, "warning: ", strbuf_text(&attach->hidden));
    return tell_unpatched(s, attach);
}

static enum err note_hooks(struct recorder_state *s, const struct attach *attach)
{
    TRY(hooked_list_add(&s->hooked, &s->aggregator, &attach->hooks, &attach->hook_texts));
    if (!s->options->tells_stops) {
        return ERR_OK;
    }
    CLEANUP(strbuf_release) struct strbuf lines = {0};
    CLEANUP(strbuf_release) struct strbuf prefix = {0};
    hooked_list_describe(&attach->hooks, &attach->hook_texts, &lines);
    strbuf_printf(&prefix, "hooked in process %d: ", attach->inject.target.pid);
    log_lines(s, strbuf_text(&prefix), strbuf_text(&lines));
    TRY(strbuf_result(&prefix));
    return strbuf_result(&lines);
}

static void note_unread(struct recorder_state *s, const char *name, int len)
{
    CLEANUP(strbuf_release) struct strbuf quoted = {0};
    strbuf_printf(&quoted, "'%.*s'", len, name);
    if (strstr(strbuf_text(&s->unread), strbuf_text(&quoted)) != NULL) {
        return;
    }
    recorder_log(s,
                 "warning: cannot read %s: stacks may end there, and an allocator in it is not "
                 "recorded",
                 strbuf_text(&quoted));
    strbuf_printf(&s->unread, "%s%s",
                  s->unread_count++ == 0 ? "parts of processes that could not be read; stacks may "
                                           "end there, and allocators in them are not recorded: "
                                         : ", ",
                  strbuf_text(&quoted));
}

enum err recorder_attach_note(struct recorder_state *s, const struct attach *attach)
{
    const char *line;
    const char *lines = strbuf_text(&attach->unread);
    for (int len; (len = next_line(&lines, &line)) >= 0;) {
        note_unread(s, line, len);
    }
    TRY(strbuf_result(&s->unread));
    return note_hooks(s, attach);
}

static enum err open_one(struct recorder_state *s,
                         uint32_t pid,
                         const struct attach_options *kind,
                         struct err_info *info)
{
    struct attach_options options = *kind;
    options.names = s->options->allocator_names;
    options.plain_modules = &s->plain_modules;
    const struct attached_process process = {.attach = calloc(1, sizeof(*process.attach)),
                                             .pidfd = -1};
    if (process.attach == NULL || attached_process_vec_reserve(&s->attached, 1) != ERR_OK) {
        free(process.attach);
        return ERR_NO_MEMORY;
    }
    const enum err err = attach_open(process.attach, (int)pid, &options, info);
    if (err != ERR_OK) {
        attach_release(process.attach);
        free(process.attach);
        return err;
    }
    s->attached.items[s->attached.len++] = process;
    return ERR_OK;
}

// Processes that were found by name and cannot be recorded are omitted.
static bool may_omit(const struct recorder_state *s, const struct err_info *trouble)
{
    if (s->options->attaches_by_name) {
        recorder_log(s, "warning: %s; it is omitted", err_text(trouble));
    }
    return s->options->attaches_by_name;
}

enum err recorder_attach_open(struct recorder_state *s, struct err_info *info)
{
    const struct recorder_options *options = s->options;
    s->is_attached = true;
    for (size_t i = 0; i < options->attach_count; i++) {
        const enum err err =
            open_one(s, options->attach_pids[i], &(struct attach_options){0}, info);
        const bool is_last = i + 1 == options->attach_count && s->attached.len == 0;
        if (err != ERR_OK && (is_last || !may_omit(s, info))) {
            return err;
        }
    }
    s->program.pid = pid_of(s->attached.items);
    strbuf_append_text(&s->preflight.executable,
                       strbuf_text(&s->attached.items->attach->executable));
    return strbuf_result(&s->preflight.executable);
}

// A child may be the first to join.
enum err
recorder_attach_describe(struct recorder_state *s, const struct attach *attach, uint64_t now_ms)
{
    const int pid = attach->inject.target.pid;
    struct string_table *strings = &s->aggregator.strings;
    struct rec_process record = {.pid = (uint32_t)pid,
                                 .parent_pid =
                                     attach->is_fresh ? (uint32_t)proc_file_parent(pid) : 0,
                                 .flags = (attach->is_fresh ? 0 : REC_PROCESS_ATTACHED) |
                                          (pid == s->program.pid ? REC_PROCESS_MAIN : 0),
                                 .start_ms = now_ms,
                                 .exit_status = -1};
    TRY(command_line_intern(strings, strbuf_bytes(&attach->command_line), &record.command_line));
    TRY(string_table_intern_text(strings, strbuf_text(&attach->executable), &record.executable));
    TRY(string_table_intern_text(strings, strbuf_text(&attach->allocator), &record.allocator));
    struct aggregator_process *begun = NULL;
    TRY(aggregator_process_begin(&s->aggregator, &record, &begun));
    return awaited_processes_add(&s->drain.awaited, begun);
}

static enum err begin_one(struct recorder_state *s,
                          struct attached_process *process,
                          uint64_t now_ms,
                          struct err_info *info)
{
    process->pidfd = (int)syscall(SYS_pidfd_open, pid_of(process), 0);
    if (process->pidfd < 0) {
        return err_set(info, ERR_NOT_FOUND, "process %d has ended", pid_of(process));
    }
    TRY(recorder_attach_describe(s, process->attach, now_ms));
    TRY(attach_begin(process->attach, s->session.memfd, info));
    // Not before: what a process that ends meanwhile does not show is no news.
    TRY(recorder_attach_tell(s, process->attach));
    return recorder_attach_note(s, process->attach);
}

// Say how long the threads were stopped for the latest change of the functions.
void recorder_attach_tell_stop(const struct recorder_state *s,
                               const struct attach *attach,
                               size_t function_count)
{
    const struct stop_report *stop = &attach->inject.stop;
    if (s->options->tells_stops && stop->attempts > 0) {
        recorder_log(s,
                     "process %d was stopped for %.2f ms (threads: %u; %.2f ms until all had "
                     "stopped; %.2f ms for %zu functions; attempt %u; %s priority)",
                     attach->inject.target.pid, (double)stop->held_ns / NS_PER_MS, stop->threads,
                     (double)stop->stop_ns / NS_PER_MS, (double)stop->work_ns / NS_PER_MS,
                     function_count, stop->attempts, stop->is_realtime ? "real-time" : "ordinary");
    }
}

// Libraries that were loaded between the look and the stop were not announced.
static enum err begin_running(struct recorder_state *s,
                              struct attached_process *process,
                              uint64_t now_ms,
                              struct err_info *info)
{
    bool unused = false;
    const enum err err = begin_one(s, process, now_ms, info);
    process->has_ended = err != ERR_OK;
    recorder_attach_tell_stop(s, process->attach, process->attach->hooked_count);
    TRY(err);
    return recorder_modules_search(s, process->attach, &unused);
}

enum err recorder_attach_begin(struct recorder_state *s, struct err_info *info)
{
    for (size_t i = 0; i < s->attached.len; i++) {
        struct attached_process *process = s->attached.items + i;
        const enum err err = begin_running(s, process, 0, info);
        if (err != ERR_OK && !may_omit(s, info)) {
            return err;
        }
    }
    return ERR_OK;
}

// Return whether a process or one of its ancestors is recorded: what recorded processes start is
// followed as far as it can be recorded (recorder_follow.c).
static bool is_in_family(const struct recorder_state *s, uint32_t pid)
{
    enum {
        ANCESTORS_MAX = 1000 // pids may change hands meanwhile
    };
    for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
        if (pid_lookup_maps((pid_t)pid, s->session.memfd)) {
            return pid != (uint32_t)getpid();
        }
        pid = (uint32_t)proc_file_parent((pid_t)pid);
    }
    return false;
}

enum err recorder_attach_join(struct recorder_state *s,
                              uint32_t pid,
                              uint64_t now_ms,
                              enum join_result *out,
                              struct err_info *info)
{
    if (is_in_family(s, pid)) {
        *out = JOIN_KNOWN;
        return ERR_OK;
    }
    // The programs that are recorded must not wait for a loader.
    const enum err opened = open_one(s, pid, &(struct attach_options){.is_urgent = true}, info);
    if (opened == ERR_TRUNCATED) {
        *out = JOIN_LOADING;
        return ERR_OK;
    }
    TRY(opened);
    struct attached_process *process = s->attached.items + s->attached.len - 1;
    process->has_joined = true;
    TRY(begin_running(s, process, now_ms, info));
    *out = JOIN_DONE;
    return ERR_OK;
}

static enum err trace_child(void *context, pid_t pid, struct err_info *info)
{
    struct recorder_state *s = context;
    struct err_info reason = {0};
    s->fresh = (struct fresh_start){.pid = pid, .tid = pid};
    const enum err err = attach_hold_begin(&s->fresh, &reason);
    return err == ERR_OK ? ERR_OK
                         : err_set(info, err, "%s; cairn could record it as it is, but %s",
                                   strbuf_text(&s->preflight.refusal), err_text(&reason));
}

static enum err await_beginning(void *context, struct err_info *info)
{
    struct recorder_state *s = context;
    const enum err err = attach_hold_run(&s->fresh, info);
    // A program that its loader has ended is reported as one that allocated nothing.
    return attach_hold_has_ended(&s->fresh) ? ERR_OK : err;
}

static enum err put_agent_in(struct recorder_state *s, struct err_info *info)
{
    TRY(open_one(s, (uint32_t)s->program.pid, &(struct attach_options){.is_fresh = true}, info));
    return begin_one(s, s->attached.items, 0, info);
}

enum err recorder_launch_with_agent(struct recorder_state *s,
                                    const struct launch_plan *plan,
                                    struct err_info *info)
{
    struct launch_plan held = *plan;
    const struct launch_hold hold = {.context = s, .begin = trace_child, .run = await_beginning};
    held.hold = &hold;
    if (!s->preflight.is_static) {
        held.preload_library = NULL;
    }
    TRY(launch_program(&held, &s->program, info));
    const enum err err = attach_hold_has_ended(&s->fresh) ? ERR_OK : put_agent_in(s, info);
    if (err != ERR_OK) { // none of it has run
        (void)kill(s->program.pid, SIGKILL);
        (void)waitpid(s->program.pid, NULL, 0);
    }
    attach_hold_release(&s->fresh);
    return err;
}

bool recorder_attach_is_over(struct recorder_state *s)
{
    size_t running = 0;
    for (size_t i = 0; i < s->attached.len; i++) {
        struct attached_process *process = s->attached.items + i;
        struct pollfd end = {.fd = process->pidfd, .events = POLLIN};
        process->has_ended = process->has_ended || poll(&end, 1, 0) == 1;
        running += !process->has_ended && !process->is_followed;
    }
    return running == 0;
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
            if (err != ERR_OK && err != ERR_NOT_FOUND) {
                return err;
            }
        }
    }
    out->len = kept;
    return ERR_OK;
}

// Forked children have copies of the changed functions.
static void leave_children(const struct recorder_state *s)
{
    CLEANUP(u32_vec_release) struct u32_vec family = {0};
    if (list_family(s, &family) != ERR_OK) {
        recorder_log(s, "no memory for the recorder: child processes keep its hooks, which do "
                        "nothing");
        return;
    }
    for (size_t i = 0; i < family.len; i++) {
        struct err_info trouble = {0};
        if (!is_attached(s, family.items[i]) &&
            attach_end_copy((int)family.items[i], &trouble) != ERR_OK) {
            recorder_log(s, "a child process keeps cairn's hooks, which do nothing: %s",
                         err_text(&trouble));
        }
    }
}

void recorder_attach_end(struct recorder_state *s)
{
    bool was_attached = false;
    for (size_t i = 0; i < s->attached.len; i++) {
        struct err_info trouble = {0};
        const struct attached_process *process = s->attached.items + i;
        if (!process->attach->is_patched) {
            continue;
        }
        was_attached = true;
        const enum err err = attach_end(process->attach, &trouble);
        if (err == ERR_NOT_FOUND) {
            continue; // it has ended by itself, and its hooks with it
        }
        // It may be in vfork, with a child that waits to be followed until the recording has ended.
        if (err == ERR_LIMIT && !session_is_over(s->session.header)) {
            continue;
        }
        if (err != ERR_OK) {
            recorder_log(s, "%s", err_text(&trouble));
        } else if (!process->has_ended) {
            recorder_attach_tell_stop(s, process->attach, process->attach->hooked_count);
        }
    }
    if (was_attached) {
        leave_children(s);
    }
}

void recorder_attach_release(struct recorder_state *s)
{
    for (size_t i = 0; i < s->attached.len; i++) {
        attach_release(s->attached.items[i].attach);
        free(s->attached.items[i].attach);
        fd_closep(&s->attached.items[i].pidfd);
    }
    strbuf_release(&s->unpatched);
    rec_hook_vec_release(&s->hooked);
    strbuf_release(&s->unread);
    attached_process_vec_release(&s->attached);
    exec_follow_release(&s->follow);
    map_u64_release(&s->plain_modules);
}
