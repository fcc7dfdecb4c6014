// SPDX-License-Identifier: MIT
// recorder_attach: the recorder's part of attaching to processes, and of starting a program with
// the agent. See recorder_state.h.
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "aggregate/aggregator_process.h"
#include "base/clock.h"
#include "base/minmax.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "host/text/format.h"
#include "recorder/outside/earlier_children.h"
#include "recorder/recorder_state.h"

enum {
    OPEN_MS = 5000,   // for attaching, if --duration is shorter: large processes need some seconds
    OTHERS_MS = 1000, // more for the other processes, after one is open
    HEAR_MS = 2,      // between two looks at signals
    OMITTED_NAMED_MAX = 16,
};

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
static enum err log_unpatched(struct recorder_state *s, const struct attach *attach)
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

enum err recorder_attach_log(struct recorder_state *s, const struct attach *attach)
{
    const char *line;
    const char *lines = strbuf_text(&attach->hidden);
    for (int len; (len = next_line(&lines, &line)) >= 0;) {
        TRY(recorder_warn_hidden(s, line, (size_t)len));
    }
    return log_unpatched(s, attach);
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

static bool has_allocator(const struct aggregator_process *process, rec_string module)
{
    for (size_t i = 0; i < process->allocators.len; i++) {
        if (process->allocators.items[i].module == module) {
            return true;
        }
    }
    return process->libc == module;
}

// Note what the allocator of a module has said.
static void
note_answer(const struct attach *attach, const char *module, struct process_allocator *allocator)
{
    for (size_t i = 0; i < attach->modules.len; i++) {
        const struct attach_module *found = attach->modules.items + i;
        if (strcmp(strbuf_text(&found->path), module) == 0) {
            allocator->kept_bytes = found->answer.kept_bytes;
            allocator->released_bytes = found->answer.released_bytes;
            allocator->rss_bytes = found->answer.rss_bytes;
        }
    }
}

// Note whose functions are hooked in a process: each memory is of one of these allocators.
static enum err note_allocators(struct recorder_state *s, const struct attach *attach)
{
    struct aggregator_process *process =
        aggregator_process_latest(&s->aggregator, (uint32_t)attach->inject.target.pid);
    if (process == NULL) {
        return ERR_OK;
    }
    process->has_agent = true;
    for (size_t i = 0; i < attach->hooks.len; i++) {
        const struct attach_hook *hook = attach->hooks.items + i;
        struct process_allocator found = {0};
        TRY(string_table_intern_text(&s->aggregator.strings,
                                     strbuf_text(&attach->hook_texts) + hook->module,
                                     &found.module));
        TRY(string_table_intern_text(&s->aggregator.strings, hook->allocator, &found.name));
        if (!hook->is_allocators || has_allocator(process, found.module)) {
            continue;
        }
        if (strcmp(hook->allocator, "libc") == 0 && process->libc == 0) {
            process->libc = found.module;
        } else {
            note_answer(attach, string_table_get(&s->aggregator.strings, found.module), &found);
            TRY(process_allocator_vec_push(&process->allocators, found));
        }
    }
    return ERR_OK;
}

enum err recorder_attach_note(struct recorder_state *s, const struct attach *attach)
{
    TRY(note_allocators(s, attach));
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
    options.reads_python = s->options->reads_python;
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

void recorder_attach_omit(struct recorder_state *s, const struct err_info *trouble)
{
    recorder_log(s, "warning: %s; it is omitted", err_text(trouble));
    if (s->omitted_count++ < OMITTED_NAMED_MAX) { // else without its reason
        strbuf_printf(&s->omitted, "%s%s",
                      s->omitted.len == 0 ? "processes that cairn did not attach to: " : "; ",
                      err_text(trouble));
    }
}

// Processes that were found by name and cannot be recorded are omitted.
static bool may_omit(struct recorder_state *s, const struct err_info *trouble)
{
    if (s->options->attaches_by_name) {
        recorder_attach_omit(s, trouble);
    }
    return s->options->attaches_by_name;
}

static bool is_any_open(const struct recorder_state *s)
{
    for (size_t i = 0; i < s->joining.len; i++) {
        if (attach_step_is_over(s->joining.items[i].step) &&
            s->joining.items[i].step->result == ERR_OK) {
            return true;
        }
    }
    return false;
}

static bool are_all_over(const struct recorder_state *s)
{
    bool are_over = true;
    for (size_t i = 0; i < s->joining.len; i++) {
        are_over = are_over && attach_step_is_over(s->joining.items[i].step);
    }
    return are_over;
}

// Return until when a process may be attached to: a recording ends after its duration, whatever the
// process does.
static uint64_t end_of_attaching(const struct recorder_state *s)
{
    const uint64_t duration_ms = s->options->run.duration_ms;
    return duration_ms != 0 ? clock_monotonic_ms() + max_u64(duration_ms, OPEN_MS) : UINT64_MAX;
}

// Wait for all processes of the user's choice. Of those that were found by name some may take
// longer than the others, which do not wait for them.
static void await_open(const struct recorder_state *s)
{
    uint64_t end_ms = end_of_attaching(s);
    bool is_any = false;
    while (s->joining.len > 0 && !are_all_over(s) && clock_monotonic_ms() < end_ms &&
           !attach_step_is_late(s->joining.items[0].step)) {
        if (!is_any && s->options->attaches_by_name && is_any_open(s)) {
            is_any = true;
            end_ms = min_u64(end_ms, clock_monotonic_ms() + OTHERS_MS);
        }
        clock_sleep_ns(NS_PER_MS);
    }
}

// Return what came of opening a process.
static enum err opened(const struct joining *joining, struct err_info *info)
{
    if (!attach_step_is_over(joining->step)) {
        return recorder_join_is_late(joining, info);
    }
    *info = joining->step->trouble;
    return joining->step->result;
}

static enum err take_open(struct recorder_state *s, struct err_info *info)
{
    for (size_t i = 0; i < s->joining.len;) {
        struct joining *joining = s->joining.items + i;
        struct err_info trouble = {0};
        const enum err err = opened(joining, &trouble);
        const bool may_come = err == ERR_LIMIT && s->options->attaches_by_name && is_any_open(s) &&
                              !attach_step_is_late(joining->step);
        if (err == ERR_OK || may_come) {
            i++;
            continue;
        }
        *info = trouble;
        if (s->joining.len == 1 || !may_omit(s, info)) {
            return err;
        }
        recorder_join_remove(s, i);
    }
    return ERR_OK;
}

// Note which children the processes of the user's choice have. What processes that were found by
// name have started is known.
static enum err note_children(struct recorder_state *s)
{
    for (size_t i = 0; i < s->joining.len && !s->options->attaches_by_name; i++) {
        TRY(earlier_children_note(s->joining.items[i].pid, &s->earlier_children));
    }
    return ERR_OK;
}

// Say which of them are not recorded because they ran before.
static enum err log_children(struct recorder_state *s)
{
    for (size_t i = 0; i < s->attached.len && s->earlier_children.len > 0; i++) {
        CLEANUP(strbuf_release) struct strbuf sentence = {0};
        size_t count = 0;
        TRY(earlier_children_describe(&s->earlier_children, pid_of(s->attached.items + i),
                                      s->options->attach_pids, s->options->attach_count, &sentence,
                                      &count));
        if (count > 0) {
            recorder_log(s, "warning: cairn did not attach to %s", strbuf_text(&sentence));
            strbuf_printf(&s->omitted, "%s%s",
                          s->omitted.len == 0 ? "processes that cairn did not attach to: " : "; ",
                          strbuf_text(&sentence));
            s->omitted_count += count;
        }
    }
    return ERR_OK;
}

// The first process that is open stands for the recording.
static enum err take_main(struct recorder_state *s, struct err_info *info)
{
    for (size_t i = 0; i < s->joining.len; i++) {
        const struct joining *joining = s->joining.items + i;
        if (attach_step_is_over(joining->step)) {
            s->program.pid = joining->pid;
            s->program.pidfd = -1;
            const enum err err = proc_file_watch(joining->pid, &s->program.pidfd, info);
            TRY(err != ERR_NOT_FOUND ? err : ERR_OK); // it has ended
            strbuf_append_text(&s->preflight.executable, strbuf_text(&joining->attach->executable));
            return strbuf_result(&s->preflight.executable);
        }
    }
    return ERR_NOT_FOUND; // no: one is open
}

enum err recorder_attach_open(struct recorder_state *s, struct err_info *info)
{
    const struct recorder_options *options = s->options;
    s->is_attached = true;
    for (size_t i = 0; i < options->attach_count; i++) {
        TRY(recorder_join_open(s, (int)options->attach_pids[i], false));
    }
    await_open(s);
    TRY(take_open(s, info));
    TRY(note_children(s));
    return take_main(s, info);
}

// Tell the recording of the threads that the process has. Threads of another namespace call
// themselves by other numbers.
static enum err expect_threads(struct recorder_state *s,
                               const struct attach *attach,
                               struct aggregator_process *process)
{
    const uint32_t pid = process->record.pid;
    const char *name = strbuf_text(&attach->thread_names);
    if (attach->threads.len == 0 || pid_lookup_inner((pid_t)pid).pid != pid) {
        return ERR_OK;
    }
    for (size_t i = 0; i < attach->threads.len; i++, name += strlen(name) + 1) {
        TRY(aggregator_thread_expect(&s->aggregator, process, attach->threads.items[i],
                                     (struct bytes){(const uint8_t *)name, strlen(name)}));
    }
    return ERR_OK;
}

// Whether a module has blocks of its own. One that only resizes has none (reallocf of libbsd).
static bool has_own_blocks(const struct allocator_scan *scan)
{
    for (size_t i = 0; i < scan->entries.len; i++) {
        if (scan->entries.items[i].hook == AGENT_MALLOC) {
            return true;
        }
    }
    return false;
}

// Append "; FILE contains ALLOCATOR", of the first module with an allocator besides libc's.
static void append_allocator(const struct attach *attach, struct strbuf *out)
{
    for (size_t i = 0; i < attach->modules.len; i++) {
        const struct attach_module *found = attach->modules.items + i;
        if (!found->scan.is_libc && has_own_blocks(&found->scan)) {
            strbuf_printf(out, "; %s contains %s", path_file_name(strbuf_text(&found->path)),
                          found->scan.owner != NULL ? found->scan.owner : "an allocator");
            return;
        }
    }
}

// Note which memory without a name the process has: no call of it will be seen.
static enum err note_earlier(struct recorder_state *s,
                             const struct attach *attach,
                             struct aggregator_process *process)
{
    const struct target_process *target = &attach->inject.target;
    for (size_t i = 0; i < target->mappings.len; i++) {
        const struct target_mapping *mapping = target->mappings.items + i;
        if (target_process_path(target, mapping->path)[0] == '\0') {
            TRY(u64_vec_push(&process->earlier_ranges, mapping->start));
            TRY(u64_vec_push(&process->earlier_ranges, mapping->end));
        }
    }
    CLEANUP(strbuf_release) struct strbuf name = {0};
    strbuf_append_text(&name, "[mapped before recording");
    if (attach->hidden_in.len > 0) {
        strbuf_printf(&name, "; %s", strbuf_text(&attach->hidden_in));
    } else {
        append_allocator(attach, &name);
    }
    strbuf_append_char(&name, ']');
    TRY(strbuf_result(&name));
    return string_table_intern_text(&s->aggregator.strings, strbuf_text(&name),
                                    &process->earlier_name);
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
    if (attach->runtime != NULL) {
        TRY(string_table_intern_text(strings, attach->runtime->key, &record.runtime));
    }
    struct aggregator_process *begun = NULL;
    TRY(aggregator_process_begin(&s->aggregator, &record, &begun));
    begun->is_late = !attach->is_fresh;
    TRY(expect_threads(s, attach, begun));
    TRY(attach->is_fresh ? ERR_OK : note_earlier(s, attach, begun));
    return awaited_processes_add(&s->drain.awaited, begun);
}

static enum err begin_one(struct recorder_state *s,
                          struct attached_process *process,
                          uint64_t now_ms,
                          struct err_info *info)
{
    TRY(proc_file_watch(pid_of(process), &process->pidfd, info));
    TRY(recorder_attach_describe(s, process->attach, now_ms));
    TRY(attach_begin(process->attach, s->session.memfd, info));
    // Not before: what a process that ends meanwhile does not show is no news.
    TRY(recorder_attach_log(s, process->attach));
    return recorder_attach_note(s, process->attach);
}

// Say how long the threads were stopped for the latest change of the functions.
void recorder_attach_log_stop(const struct recorder_state *s,
                              const struct attach *attach,
                              size_t function_count)
{
    const struct stop_report *stop = &attach->inject.stop;
    if (s->options->tells_stops && stop->attempts > 0) {
        recorder_log(s,
                     "process %d was stopped for %.2f ms (threads: %u; %.2f ms until all had "
                     "stopped; %.2f ms for %s; attempt %u; %s priority)",
                     attach->inject.target.pid, (double)stop->held_ns / NS_PER_MS, stop->threads,
                     (double)stop->stop_ns / NS_PER_MS, (double)stop->work_ns / NS_PER_MS,
                     format_things(function_count, "function", "functions").text, stop->attempts,
                     stop->is_realtime ? "real-time" : "ordinary");
    }
}

// Wait for the step of a process of the user's choice, as long as he does.
static enum err
await_begin(struct recorder_state *s, size_t index, uint64_t end_ms, struct err_info *info)
{
    const struct joining *joining = s->joining.items + index;
    while (!attach_step_await(joining->step, HEAR_MS)) {
        TRY(recorder_drain(s)); // other processes may be recorded already
        recorder_take_signals(s);
        if (s->is_stopped) {
            return err_set(info, ERR_CANCELLED, "attaching was interrupted");
        }
        if (attach_step_is_late(joining->step) || clock_monotonic_ms() >= end_ms) {
            return recorder_join_is_late(joining, info);
        }
    }
    *info = joining->step->trouble;
    const enum err err = joining->step->result;
    TRY(recorder_join_finish(s, index));
    return err;
}

// Wait a moment for processes that were found by name, and record those that have begun meanwhile.
// The loop attends to the others: none waits for another one.
static enum err await_named(struct recorder_state *s)
{
    const uint64_t end_ms = clock_monotonic_ms() + OTHERS_MS;
    for (size_t i = 0; i < s->joining.len; i++) {
        s->joining.items[i].is_initial = attach_step_is_over(s->joining.items[i].step);
    }
    while (s->joining.len > 0 && !s->is_stopped && clock_monotonic_ms() < end_ms) {
        TRY(recorder_join_round(s, 0));
        TRY(recorder_drain(s));
        recorder_take_signals(s);
        clock_sleep_ns(NS_PER_MS);
    }
    return ERR_OK;
}

enum err recorder_attach_begin(struct recorder_state *s, struct err_info *info)
{
    if (s->options->attaches_by_name) {
        return await_named(s);
    }
    const uint64_t end_ms = end_of_attaching(s);
    while (s->joining.len > 0) {
        TRY(recorder_join_begin(s, s->joining.items, 0, info));
        TRY(await_begin(s, 0, end_ms, info));
    }
    return log_children(s);
}

static enum err trace_child(void *context, pid_t pid, struct err_info *info)
{
    struct recorder_state *s = context;
    struct err_info reason = {0};
    s->fresh = (struct fresh_start){.pid = pid, .tid = pid, .calls = &kernel_calls_real};
    const enum err err = fresh_stop_begin(&s->fresh, &reason);
    return err == ERR_OK ? ERR_OK
                         : err_set(info, err, "%s; cairn could record it as it is, but %s",
                                   strbuf_text(&s->preflight.refusal), err_text(&reason));
}

static enum err await_beginning(void *context, struct err_info *info)
{
    struct recorder_state *s = context;
    const enum err err = fresh_stop_run(&s->fresh, info);
    // A program that its loader has ended is reported as one that allocated nothing.
    return fresh_stop_has_ended(&s->fresh) ? ERR_OK : err;
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
    const enum err err = fresh_stop_has_ended(&s->fresh) ? ERR_OK : put_agent_in(s, info);
    if (err != ERR_OK) { // none of it has run
        (void)kill(s->program.pid, SIGKILL);
        (void)waitpid(s->program.pid, NULL, 0);
    }
    fresh_stop_release(&s->fresh);
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
    return running == 0 && s->joining.len == 0;
}

void recorder_attach_release(struct recorder_state *s)
{
    while (s->joining.len > 0) {
        recorder_join_remove(s, 0);
    }
    joining_vec_release(&s->joining);
    settled_process_vec_release(&s->settled);
    recorder_modules_release(s);
    for (size_t i = 0; i < s->attached.len; i++) {
        attach_release(s->attached.items[i].attach);
        free(s->attached.items[i].attach);
        fd_closep(&s->attached.items[i].pidfd);
    }
    strbuf_release(&s->unpatched);
    strbuf_release(&s->hidden);
    strbuf_release(&s->said_runtimes);
    process_runtimes_release(&s->runtimes);
    rec_hook_vec_release(&s->hooked);
    strbuf_release(&s->unread);
    strbuf_release(&s->omitted);
    u32_vec_release(&s->earlier_children);
    attached_process_vec_release(&s->attached);
    exec_follow_release(&s->follow);
    if (s->plain_modules != NULL && s->left_steps == 0) {
        map_u64_release(&s->plain_modules->files);
        free(s->plain_modules);
    }
}
