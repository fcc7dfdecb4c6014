// SPDX-License-Identifier: MIT
// recorder_state: what start, loop and end of a recording share. See recorder_state.h.
#include "recorder/recorder_state.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "host/text/format.h"
#include "recorder/ingest/drain_books.h"

enum {
    LAST_READS_MS = 500, // for files that are still to be read when recording ends
    REPLACED_SHARE = 50, // the most that looks at processes that execute take of the time
};

void recorder_log(const struct recorder_state *s, const char *format, ...)
{
    const struct recorder_callbacks *callbacks = &s->options->callbacks;
    if (callbacks->log == NULL) {
        return;
    }
    CLEANUP(strbuf_release) struct strbuf sentence = {0};
    va_list arguments;
    va_start(arguments, format);
    strbuf_vprintf(&sentence, format, arguments);
    va_end(arguments);
    callbacks->log(callbacks->context, strbuf_text(&sentence));
}

// Say a sentence once. Return whether it is new.
static bool
warn_once(const struct recorder_state *s, struct strbuf *said, const char *sentence, size_t len)
{
    CLEANUP(strbuf_release) struct strbuf line = {0};
    strbuf_printf(&line, "%s%.*s", said->len > 0 ? "; " : "", (int)len, sentence);
    const char *text = strbuf_text(&line) + (said->len > 0 ? 2 : 0);
    if (strstr(strbuf_text(said), text) != NULL) {
        return false;
    }
    recorder_log(s, "warning: %s", text);
    strbuf_append_text(said, strbuf_text(&line));
    return true;
}

enum err recorder_warn_hidden(struct recorder_state *s, const char *sentence, size_t len)
{
    s->hidden_count += warn_once(s, &s->hidden, sentence, len);
    return strbuf_result(&s->hidden);
}

enum err recorder_warn_programs_hidden(struct recorder_state *s)
{
    const char *hidden = preflight_find_hidden(&s->preflight);
    return hidden != NULL ? recorder_warn_hidden(s, hidden, strlen(hidden)) : ERR_OK;
}

// Only of the programs of the user's choice: the report names all.
static enum err warn_runtime(struct recorder_state *s, const struct rec_process *record)
{
    const struct string_table *strings = &s->aggregator.strings;
    const struct runtime *runtime = runtime_table_named(string_table_get(strings, record->runtime));
    const uint32_t chosen = REC_PROCESS_MAIN | REC_PROCESS_ATTACHED;
    CLEANUP(strbuf_release) struct strbuf sentence = {0};
    if (!s->options->tells_runtimes || runtime == NULL || (record->flags & chosen) == 0 ||
        (record->flags & REC_PROCESS_OBJECTS) != 0) {
        return ERR_OK;
    }
    strbuf_printf(&sentence, "'%s' ", string_table_get(strings, record->executable));
    runtime_explain(runtime, &sentence);
    (void)warn_once(s, &s->said_runtimes, strbuf_text(&sentence), sentence.len); // new or not
    TRY(strbuf_result(&sentence));
    return strbuf_result(&s->said_runtimes);
}

// Read one process that waits for it. *out_was_one: there was one.
static enum err find_runtime(struct recorder_state *s, size_t looks, bool *out_was_one)
{
    struct aggregator_process *process = NULL;
    struct runtime_reading *reading = NULL;
    TRY(process_runtimes_next(&s->runtimes, &s->aggregator, s->session.memfd, looks, &process,
                              &reading));
    *out_was_one = process != NULL;
    if (process == NULL) {
        return ERR_OK;
    }
    const struct aside_work work = {
        .run = runtime_reading_take, .release = runtime_reading_free, .context = reading};
    const bool is_over = recorder_do_aside(s, &work) == ERR_OK;
    const enum err err =
        process_runtimes_put(&s->runtimes, &s->aggregator, process, is_over ? reading : NULL);
    if (is_over) {
        runtime_reading_free(reading);
    }
    return err;
}

enum err recorder_find_runtimes(struct recorder_state *s, bool is_last)
{
    struct process_runtimes *runtimes = &s->runtimes;
    const uint64_t end_ms = clock_monotonic_ms() + LAST_READS_MS;
    bool goes_on = true;
    while (goes_on) {
        TRY(find_runtime(s, is_last ? SIZE_MAX : RUNTIMES_LOOKS_MAX, &goes_on));
        goes_on = goes_on && is_last && clock_monotonic_ms() < end_ms;
    }
    for (size_t i = 0; i < runtimes->news.len; i++) {
        TRY(warn_runtime(s, &s->aggregator.processes.items[runtimes->news.items[i]]->record));
    }
    u32_vec_clear(&runtimes->news);
    return ERR_OK;
}

// Relaxed: the counts of other processes order nothing else.
static uint64_t count_of(const _Atomic uint64_t *count)
{
    return count != NULL ? atomic_load_explicit(count, memory_order_relaxed) : 0;
}

// Return the memory limit if the kernel has killed a process around the recorder since the start,
// else 0. A killed program has no control group any more, but the recorder is in the same one.
static uint64_t oom_limit_of(const struct recorder_state *s)
{
    static const char own[] = "/proc/self/cgroup";
    const char *root = s->options->cgroup_root;
    return root != NULL && memory_kills_of(own, root, "/proc") > s->kills_at_start
               ? memory_headroom_of(own, root, "/proc").limit_bytes
               : 0;
}

enum err
recorder_snapshot(struct recorder_state *s, enum rec_state state, struct aggregator_snapshot *out)
{
    if (state != REC_STATE_RUNNING) {
        TRY(drain_books_list_running(&s->drain));
    }
    struct aggregator_snapshot_facts facts = {
        .state = state,
        .pid = (uint32_t)s->program.pid,
        .exit_status = s->wait_status,
        .max_frames = s->session.header->max_frames,
        .start_unix_ns = s->start_unix_ns,
        .runtime_ms = s->end_ms != 0 ? s->end_ms : session_clock_now(&s->clock),
        .checkpoint_count = s->checkpoint.written_count,
        .checkpoint_interval_ms = state == REC_STATE_RUNNING ? s->checkpoint.interval_ms : 0,
        .events = drain_events(&s->drain),
        .tool_version = s->options->tool_version,
        .program = strbuf_text(&s->preflight.executable),
        .argv = s->options->argv,
        .blocks = state != REC_STATE_RUNNING && s->options->lists_blocks ? &s->blocks : NULL,
        .marks = s->aggregator.marks.marks.items,
        .mark_count = s->aggregator.marks.marks.len,
        .oom_limit_bytes = state == REC_STATE_FINISHED ? oom_limit_of(s) : 0,
        .lost_profiles = count_of(s->options->lost_profiles),
        .reduced_profiles = count_of(s->options->reduced_profiles),
        .unpatched = strbuf_text(&s->unpatched),
        .unpatched_count = s->unpatched_count,
        .hidden = strbuf_text(&s->hidden),
        .hidden_count = s->hidden_count,
        .unread = strbuf_text(&s->unread),
        .unread_count = s->unread_count,
        .slow_count = s->slow_count,
        .omitted = strbuf_text(&s->omitted),
        .omitted_count = s->omitted_count,
        .unjoined_count = s->pending.unjoined_count,
        .hooks = s->hooked.items,
        .hook_count = s->hooked.len,
        .unrecorded = s->unrecorded.entries.items,
        .unrecorded_count = s->unrecorded.entries.len,
    };
    for (size_t i = 0; i < SESSION_COUNTER_COUNT; i++) {
        facts.counters[i] = s->drain.counters[i];
    }
    facts.counters[LOST_missed_allocations] += s->aggregator.missed_allocations;
    facts.counters[LOST_missed_frees] += s->aggregator.missed_frees;
    facts.counters[LOST_corrupt_lane] = s->drain.corrupt_lanes; // counted only here
    facts.counters[LOST_corrupt_counter] = s->drain.corrupt_counters;
    return aggregator_snapshot_take(&s->aggregator, &s->sampler, &s->memory_snapshots, &facts, out);
}

struct program_reading {
    struct strbuf path;
    pid_t pid;
    const struct runtime *runtime;
};

static void program_reading_free(void *context)
{
    struct program_reading *reading = context;
    strbuf_release(&reading->path);
    free(reading);
}

static void read_program(void *context)
{
    struct program_reading *reading = context;
    reading->runtime = runtime_files_read(strbuf_text(&reading->path), reading->pid);
}

// Read the file of a static program aside.
static enum err read_unrecorded(struct recorder_state *s, const struct unread_program *unread)
{
    const struct runtime *runtime = NULL;
    struct program_reading *reading = calloc(1, sizeof(*reading));
    if (reading == NULL) {
        return ERR_NO_MEMORY;
    }
    reading->pid = unread->pid;
    strbuf_append_text(&reading->path, string_table_get(&s->aggregator.strings, unread->program));
    const struct aside_work work = {
        .run = read_program, .release = program_reading_free, .context = reading};
    if (recorder_do_aside(s, &work) == ERR_OK) {
        runtime = reading->runtime;
        program_reading_free(reading);
    }
    return runtime_files_put(&s->unrecorded.runtimes, unread->program, runtime);
}

static enum err read_all_unrecorded(struct recorder_state *s)
{
    const uint64_t end_ms = clock_monotonic_ms() + LAST_READS_MS;
    struct unread_program_vec *unread = &s->unrecorded.unread;
    while (unread->len > 0 && clock_monotonic_ms() < end_ms) {
        const struct unread_program next = unread->items[--unread->len];
        TRY(read_unrecorded(s, &next));
    }
    return ERR_OK;
}

// End the images that have been replaced. Whether they have takes a look at the process's map,
// which may be long.
static enum err end_replaced(struct recorder_state *s, uint64_t now_ms)
{
    const uint64_t begun_ns = clock_monotonic_ns();
    if (begun_ns < s->next_replaced_ns) {
        return ERR_OK;
    }
    for (size_t i = 0; i < s->unrecorded.recent.len; i++) {
        const struct unrecorded_exec *exec = &s->unrecorded.recent.items[i]; // the list may change
        const struct drain_replacement replacement = {
            .pid = exec->pid, .joins = exec->joins, .time_ms = exec->time_ms};
        if (drain_has_replaceable(&s->drain, &replacement) &&
            !recorder_may_map(s, replacement.pid)) {
            TRY(drain_end_replaced(&s->drain, &replacement, now_ms));
        }
    }
    s->next_replaced_ns = begun_ns + (clock_monotonic_ns() - begun_ns) * REPLACED_SHARE;
    return ERR_OK;
}

void recorder_tell_of_lanes(struct recorder_state *s)
{
    if (s->aggregator.budget.over_bytes != 0 && !s->has_exceeded) {
        s->has_exceeded = true;
        recorder_log(s, "the memory limit (--max-memory) does not hold: the threads take %s",
                     format_bytes(s->words_memory.lanes_bytes).text);
    }
}

enum err recorder_take_unrecorded(struct recorder_state *s, uint64_t now_ms)
{
    TRY(unrecorded_list_take(&s->unrecorded, &s->aggregator, &s->session, now_ms));
    TRY(read_all_unrecorded(s));
    if (now_ms != UINT64_MAX) {
        TRY(end_replaced(s, now_ms));
    }
    return unrecorded_list_count_due(&s->unrecorded, &s->aggregator, now_ms);
}
