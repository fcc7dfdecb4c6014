// SPDX-License-Identifier: MIT
// recorder: see the header. This file has start and end; recorder_loop.c has the time in between.
#include "recorder/recorder.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/minmax.h"
#include "host/os/file.h"
#include "recorder/memory/own_memory.h"
#include "recorder/recorder_state.h"
#include "recording/write/output_file.h"
#include "recording/write/recording_writer.h"
#include "session/python_versions.h"

// With --sample a program may have no processor to spare.
#define SAMPLE_THRIFT_BITS 2u // looks at resident memory take a quarter
#define SAMPLE_TICK_MS     8u
#define TICK_MS            1u

static uint32_t session_flags_of(const struct recorder_options *options)
{
    return (options->lists_blocks ? SESSION_BLOCKS : 0) |
           (options->follow_children ? SESSION_FOLLOW_CHILDREN | SESSION_FOLLOW_EXECS : 0) |
           (options->check_unwind ? SESSION_CHECK_UNWIND : 0) |
           (options->reads_python ? SESSION_PYTHON : 0) |
           (options->may_sample ? SESSION_OVERFLOW_SAMPLE : 0);
}

static enum err check_program(struct recorder_state *s,
                              const struct recorder_options *options,
                              int *exit_status,
                              struct err_info *info)
{
    if (options->attach_count != 0) {
        *exit_status = PREFLIGHT_STATUS_CANNOT_RECORD;
        return recorder_attach_open(s, info);
    }
    const struct preflight_options rules = {.allow_own_malloc = options->allow_own_malloc,
                                            .follow_children = options->follow_children,
                                            .allocator_names = options->allocator_names,
                                            .searches_libraries = options->searches_libraries,
                                            .can_use_agent = true};
    const enum err err = preflight_check(options->argv, &rules, &s->preflight, info);
    if (err != ERR_OK) {
        *exit_status = s->preflight.exit_status;
    }
    return err;
}

static size_t folder_len(const struct strbuf *path)
{
    return path->len - strlen(path_file_name(strbuf_text(path)));
}

// Name the recording of a process.
static enum err name_output(struct recorder_state *s, pid_t pid, struct err_info *info)
{
    const struct recorder_callbacks *callbacks = &s->options->callbacks;
    strbuf_clear(&s->output);
    return callbacks->output_path(callbacks->context, (uint32_t)pid, &s->output, info);
}

// Name the recording of the program, which runs. It may have moved the folder: the place that was
// found before counts.
static enum err name_final_output(struct recorder_state *s, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf before = {0};
    strbuf_append(&before, strbuf_text(&s->output), folder_len(&s->output));
    TRY(strbuf_result(&before));
    TRY(name_output(s, s->program.pid, info));
    const char *name = path_file_name(strbuf_text(&s->output));
    if (before.len == folder_len(&s->output) &&
        memcmp(strbuf_text(&before), strbuf_text(&s->output), before.len) == 0) {
        strbuf_truncate(&s->output_absolute, folder_len(&s->output_absolute));
        strbuf_append_text(&s->output_absolute, name);
        return strbuf_result(&s->output_absolute);
    }
    strbuf_clear(&s->output_absolute);
    return file_absolute_path(strbuf_text(&s->output), &s->output_absolute, info);
}

// Prepare everything that must exist before the program may run.
static enum err prepare(struct recorder_state *s,
                        const struct recorder_options *options,
                        int *exit_status,
                        struct err_info *info)
{
    TRY(check_program(s, options, exit_status, info));
    *exit_status = RECORDER_EXIT_OUTPUT;
    TRY(name_output(s, getpid(), info));
    TRY(output_file_probe(strbuf_text(&s->output), info));
    TRY(file_absolute_path(strbuf_text(&s->output), &s->output_absolute, info));
    *exit_status = PREFLIGHT_STATUS_CANNOT_RECORD;
    uint64_t seed = 0;
    // without it hash attacks become possible, nothing else
    (void)!getrandom(&seed, sizeof(seed), 0);
    const uint64_t sample_seed = options->sample_seed != 0 ? options->sample_seed : hash_mix(seed);
    const struct session_options session = {.flags = session_flags_of(options),
                                            .max_frames = options->max_frames,
                                            .sample_bytes = options->sample_bytes,
                                            .sample_seed = sample_seed};
    TRY(session_create(&session, &s->session, info));
    TRY(aggregator_init(&s->aggregator));
    s->aggregator.budget = (struct memory_budget){.max_bytes = options->max_memory_bytes,
                                                  .is_usual = options->has_usual_memory,
                                                  .keeps_rows = options->lists_blocks};
    s->aggregator.sample_bytes = options->sample_bytes;
    s->own_memory = own_memory_open();
    s->blocks.seed = hash_mix(seed);
    s->blocks.rows = &s->aggregator.totals.rows;
    if (options->lists_blocks) {
        s->book_blocks.list = &s->blocks;
        s->aggregator.blocks = &s->book_blocks;
    }
    TRY(run_control_init(&s->control, &options->run, s->session.header, &s->aggregator));
    proc_sampler_init(&s->sampler);
    s->tick_ms = TICK_MS;
    if (options->sample_bytes != 0) {
        s->tick_ms = SAMPLE_TICK_MS;
        s->sampler.thrift_bits = SAMPLE_THRIFT_BITS;
        s->memory_snapshots.thrift_bits = SAMPLE_THRIFT_BITS;
    }
    TRY(drain_init(&s->drain, &s->session, &s->aggregator, info));
    return ERR_OK;
}

// Start the program with the preload library, or the agent.
static enum err launch_child(struct recorder_state *s, int *exit_status, struct err_info *info)
{
    const struct launch_plan plan = {
        .path = strbuf_text(&s->preflight.path),
        .argv = s->options->argv,
        .preload_library = strbuf_text(&s->library.name),
        .session = s->session.environment,
        .signals = &s->signals,
        .out_pid = &s->session.header->main_pid,
    };
    struct rusage usage = {0};
    (void)getrusage(RUSAGE_SELF, &usage); // cannot fail for this one
    s->own_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
    enum err err = s->preflight.wants_agent ? recorder_launch_with_agent(s, &plan, info)
                                            : launch_program(&plan, &s->program, info);
    if (err != ERR_OK) {
        *exit_status = err == ERR_NOT_FOUND && !s->preflight.wants_agent
                           ? PREFLIGHT_STATUS_NOT_FOUND
                           : PREFLIGHT_STATUS_CANNOT_RECORD;
        return err;
    }
    s->is_launched = true;
    return ERR_OK;
}

static enum err launch(struct recorder_state *s, int *exit_status, struct err_info *info)
{
    if (!s->is_attached && (!s->preflight.wants_agent || s->preflight.is_static)) {
        TRY(preload_path_find(s->options->preload_library, &s->library, info));
    }
    TRY(launch_take_signals(&s->signals, &s->signal_fd, info));
    s->has_signals = true;
    s->start_unix_ns = clock_real_ns();
    pid_order_init(&s->pending.order, clock_monotonic_ms());
    // Relaxed: no program takes part yet.
    atomic_store_explicit(&s->session.header->state, SESSION_RUNNING, memory_order_relaxed);
    if (s->preflight.wants_agent) { // which may fail, and tell more
        TRY(recorder_warn_programs_hidden(s));
    }
    TRY(s->is_attached ? ERR_OK : launch_child(s, exit_status, info));
    s->session.header->main_pid = (uint32_t)s->program.pid; // else it has it already
    s->wait_status = -1;
    s->drain.main_pid = s->program.pid;
    s->drain.own_pid = getpid();
    recorder_follow_begin(s);
    TRY(session_clock_start(&s->clock, &s->session, s->program.pidfd, s->tick_ms, info));
    s->drain.clock = &s->clock;
    return s->is_attached ? recorder_attach_begin(s, info) : ERR_OK;
}

// Add a program that never allocated and so never joined: the recording lists it, too.
static enum err add_silent_program(struct recorder_state *s)
{
    for (size_t i = 0; i < s->aggregator.processes.len; i++) {
        if ((s->aggregator.processes.items[i]->record.flags & REC_PROCESS_MAIN) != 0) {
            return ERR_OK;
        }
    }
    struct rec_process record = {.pid = (uint32_t)s->program.pid,
                                 .parent_pid = (uint32_t)getpid(),
                                 .flags = REC_PROCESS_MAIN,
                                 .exit_status = -1};
    TRY(string_table_intern_text(&s->aggregator.strings, strbuf_text(&s->preflight.executable),
                                 &record.executable));
    struct aggregator_process *process = NULL;
    TRY(aggregator_process_begin(&s->aggregator, &record, &process));
    const struct aggregator_process_ending ending = {.end_ms = s->program_end_ms};
    return s->has_ended ? aggregator_process_end(&s->aggregator, process, &ending) : ERR_OK;
}

static enum err name_frames(struct recorder_state *s)
{
    const struct recorder_callbacks *callbacks = &s->options->callbacks;
    if (callbacks->name_frames == NULL) {
        return ERR_OK;
    }
    struct recording *recording = &s->snapshot.recording;
    if (callbacks->name_frames(callbacks->context, recording, &s->aggregator.strings,
                               &s->symbols) != ERR_OK) {
        recorder_log(s, "functions could not be named; the recording has addresses only");
        for (size_t i = 0; i < recording->frame_count; i++) {
            recording->frames[i].symbol_count = 0;
        }
        rec_symbol_vec_clear(&s->symbols);
    }
    recording->symbols = s->symbols.items;
    recording->symbol_count = s->symbols.len;
    return aggregator_snapshot_lend_strings(&s->snapshot, &s->aggregator);
}

static bool show_writing(void *context, uint64_t done, uint64_t total)
{
    const struct recorder_callbacks *callbacks = context;
    if (callbacks->progress != NULL) {
        callbacks->progress(callbacks->context, "writing the recording", done, total);
    }
    return true;
}

static enum err write_recording(struct recorder_state *s, struct err_info *info)
{
    struct recorder_callbacks callbacks = s->options->callbacks;
    struct table_supply history = row_history_supply(&s->snapshot.history);
    const struct recording_write_options options = {
        .generation = (uint32_t)s->checkpoint.written_count + 1,
        .mode = s->options->file_mode,
        .supply = &history,
        .progress = show_writing,
        .progress_context = &callbacks,
    };
    return recording_write(&s->snapshot.recording, strbuf_text(&s->output), &options, info);
}

// Take the kernel's peak of a short run that ended before the first sample. That peak covers the
// program's children, too, and the time before its execve, when it was a copy of the recorder. So
// it counts only if there were no children and it exceeds the recorder's own peak.
static void take_kernels_peak(struct recorder_state *s)
{
    const struct aggregator_process_vec *processes = &s->aggregator.processes;
    for (size_t i = 0; i < processes->len; i++) {
        if (processes->items[i]->record.pid != (uint32_t)s->program.pid) {
            return;
        }
    }
    if (processes->len > 0 && s->program_rss_bytes > s->own_rss_bytes) {
        processes->items[processes->len - 1]->record.peak_rss_bytes = s->program_rss_bytes;
    }
}

// Make the recording and its file, after the program has ended or was left to itself.
static enum err
finish(struct recorder_state *s, struct recorder_result *result, struct err_info *info)
{
    const enum rec_state state =
        s->is_stopped || s->was_abandoned ? REC_STATE_STOPPED : REC_STATE_FINISHED;
    // A checkpoint that fails now is not reported: the final file follows, and may fail in turn.
    const bool was_failure_reported = s->checkpoint.has_failed;
    (void)checkpoint_finish(&s->checkpoint, CHECKPOINT_GRACE_MS, session_clock_now(&s->clock));
    enum err err = add_silent_program(s);
    err = err == ERR_OK ? recorder_find_runtimes(s, true) : err;
    err = err == ERR_OK ? recorder_take_unrecorded(s, UINT64_MAX) : err;
    take_kernels_peak(s);
    aggregator_seal(&s->aggregator);
    err = err == ERR_OK ? recorder_snapshot(s, state, &s->snapshot) : err;
    err = err == ERR_OK ? name_frames(s) : err;
    if (err != ERR_OK) {
        return err_set(info, err, "no memory to finish the recording");
    }
    result->recording = s->snapshot.recording;
    struct err_info trouble = {0};
    err = write_recording(s, &trouble);
    if (err != ERR_OK) {
        result->is_reported = was_failure_reported;
        return err_set(info, err, "%s; %s", err_text(&trouble),
                       checkpoint_what_stays(&s->checkpoint));
    }
    if (rotation_is_wanted(&s->options->rotation)) {
        recorder_keep_state(s);
    }
    const struct recorder_callbacks *callbacks = &s->options->callbacks;
    if (!s->has_ended && callbacks->complete != NULL) {
        callbacks->complete(callbacks->context, &result->recording, strbuf_text(&s->output));
    }
    result->output_path = strbuf_take(&s->output);
    return result->output_path != NULL ? ERR_OK : ERR_NO_MEMORY;
}

// Say which rules the lanes broke that were not read to their end.
static void log_faults(const struct recorder_state *s)
{
    const struct drain *drain = &s->drain;
    const uint64_t count = s->options->tells_stops ? drain->corrupt_lanes : 0;
    for (uint64_t i = 0; i < min_u64(count, DRAIN_FAULTS_MAX); i++) {
        const struct drain_fault *fault = &drain->faults[i];
        CLEANUP(strbuf_release) struct strbuf text = {0};
        lane_fault_text(&text, &fault->fault);
        recorder_log(s, "lane %u of process %d, thread %u, is not read any more: %s",
                     (unsigned)fault->lane, (int)fault->pid, (unsigned)fault->thread_id,
                     strbuf_text(&text));
    }
}

// Say it if the frames of Python are missing although they were wanted.
static void log_missing_python(const struct recorder_state *s)
{
    if (!s->options->reads_python) {
        return;
    }
    // Relaxed: the word is all there is.
    const uint32_t seen =
        atomic_load_explicit(&s->session.header->python_version, memory_order_relaxed);
    const uint32_t version = seen & ~SESSION_PYTHON_REFUSED;
    if (seen == 0) {
        recorder_log(s, "--python: no interpreter of Python was found; all frames are native");
    } else if (version == PYTHON_VERSION_OLDER) {
        recorder_log(s, "--python reads Python 3.10 to 3.14, and this one is older; its frames are "
                        "those of its interpreter");
    } else if (seen != version) {
        recorder_log(
            s,
            "--python reads Python 3.10 to 3.14 (no free-threaded builds), and this one is "
            "%" PRIu32 ".%" PRIu32 "; its frames are those of its interpreter",
            version >> 8 & 0xff, version & 0xff);
    }
}

static enum err
record(struct recorder_state *s, struct recorder_result *result, struct err_info *info)
{
    TRY(name_final_output(s, info));
    TRY(checkpoint_init(&s->checkpoint, strbuf_text(&s->output),
                        s->options->checkpoint_interval_ms));
    control_socket_name_recording(&s->socket, strbuf_text(&s->output_absolute));
    struct err_info trouble = {0};
    if (rotation_init(&s->rotation, &s->options->rotation, strbuf_text(&s->output_absolute),
                      &trouble) != ERR_OK) {
        recorder_log(s, "%s", err_text(&trouble));
    }
    enum err err = recorder_loop(s, &trouble);
    control_socket_close(&s->socket);
    log_missing_python(s);
    log_faults(s);
    if (err != ERR_OK) {
        recorder_log(s, "recording ends early: %s", err_text(&trouble));
        s->is_stopped = true;
    }
    return finish(s, result, info);
}

// After a failure too: processes that wait to be followed go on.
static void end_session(struct recorder_state *s)
{
    if (s->session.header != NULL) {
        // Relaxed: the flag orders nothing else.
        atomic_store_explicit(&s->session.header->state, SESSION_ENDED, memory_order_relaxed);
    }
}

// Wait for the program to end, whatever went wrong with the recording.
static void outlive_program(struct recorder_state *s)
{
    if (s->is_launched) {
        recorder_wait(s);
    }
}

enum err recorder_run(const struct recorder_options *options,
                      struct recorder_result *result,
                      struct err_info *info)
{
    *result = (struct recorder_result){.exit_status = PREFLIGHT_STATUS_CANNOT_RECORD};
    struct recorder_state *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return ERR_NO_MEMORY;
    }
    result->state = s;
    s->options = options;
    s->signal_fd = -1;
    s->own_memory = -1;
    s->session = (struct session){.memfd = -1, .socket = -1};
    s->program.pidfd = -1;
    s->library = (struct preload_path)PRELOAD_PATH_INIT;
    s->socket = (struct control_socket)CONTROL_SOCKET_INIT;
    // First of all: requests that come early wait in its queue.
    struct err_info trouble = {0};
    if (control_socket_open(&s->socket, &trouble) != ERR_OK) { // requests fail; recording works
        recorder_log(s, "%s; this recording cannot be controlled", err_text(&trouble));
    }
    TRY(prepare(s, options, &result->exit_status, info));
    s->kills_at_start = options->cgroup_root != NULL
                            ? memory_kills_of("/proc/self/cgroup", options->cgroup_root, "/proc")
                            : 0;
    enum err err = launch(s, &result->exit_status, info);
    if (err == ERR_OK) {
        err = record(s, result, info);
    }
    end_session(s);
    (void)exec_follow_stop(&s->follow, EXEC_FOLLOW_END_MS); // after a failure
    recorder_attach_end(s);
    if (s->is_attached && err == ERR_OK) {
        result->exit_status = 0;
    }
    control_socket_close(&s->socket); // so that no client waits for a reply
    if (err != ERR_OK && s->is_launched && !s->has_ended && !result->is_reported) {
        recorder_log(s, "%s; the program continues", err_text(info));
        result->is_reported = true;
    }
    outlive_program(s);
    session_clock_stop(&s->clock);
    session_close_door(&s->session);
    session_give_words_back(&s->session);
    result->has_run = s->is_launched;
    result->wait_status = s->wait_status;
    if (s->has_signals) {
        launch_restore_signals(&s->signals);
    }
    return err;
}

void recorder_result_release(struct recorder_result *result)
{
    struct recorder_state *s = result->state;
    if (s != NULL) {
        session_clock_stop(&s->clock);
        aside_free(s->waiting_aside);
        checkpoint_release(&s->checkpoint);
        aggregator_snapshot_release(&s->snapshot);
        rec_symbol_vec_release(&s->symbols);
        drain_release(&s->drain);
        listed_block_vec_release(&s->listed_blocks);
        proc_sampler_release(&s->sampler);
        memory_snapshots_release(&s->memory_snapshots);
        unrecorded_list_release(&s->unrecorded);
        unrecorded_tree_release(&s->unrecorded_tree);
        aggregator_release(&s->aggregator);
        recorder_attach_release(s); // its threads touch the session
        session_release(&s->session);
        preflight_release(&s->preflight);
        preload_path_release(&s->library);
        strbuf_release(&s->output);
        strbuf_release(&s->output_absolute);
        rotation_release(&s->rotation);
        control_socket_close(&s->socket);
        block_list_release(&s->blocks);
        book_blocks_release(&s->book_blocks);
        fd_closep(&s->signal_fd);
        fd_closep(&s->own_memory);
        fd_closep(&s->program.pidfd);
        free(s);
    }
    free(result->output_path);
    *result = (struct recorder_result){0};
}
