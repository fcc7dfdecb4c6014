// SPDX-License-Identifier: MIT
// record_run: runs a program from its settings to its exit status. See record_run.h.
#include "cli/record/record_run.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aggregate/memory_budget.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "cli/names/background_symbolizer.h"
#include "cli/names/jit_names.h"
#include "cli/names/record_names.h"
#include "cli/options/command.h"
#include "cli/options/output_name.h"
#include "cli/record/record_collectors.h"
#include "cli/report/run_summary.h"
#include "cli/text/screen_text.h"
#include "host/memory/memory_limit.h"
#include "host/os/proc_file.h"
#include "host/os/progress.h"
#include "host/text/number.h"
#include "recorder/recorder.h"
#include "symbols/name_cache.h"

enum {
    SIGNAL_STATUS_BASE = 128, // what a shell adds to a signal's number
    ROWS_TWICE_MAX = 100000,  // 30 MB
};

// Path of the preloaded library, relative to the folder of this executable.
static const char preload_library[] = "/../lib/cairn/libcairn_preload.so";

// How --max-memory is divided: a recorder alone has it, besides the copies that write checkpoints.
// With --listen or --push there are processes beside it, and all of them have it together:
//
//                 at most       took, with 500,000 stacks and the recorder at its limit
//   recorder      1/2           0.37
//   --push        1/5           0.15
//   the copy                    0.21
//   --listen                    0.11
//
// The last two have no limit of their own: a copy shares what has not changed with the recorder,
// and the server holds one lean profile of what the recorder holds (input_file.h). The recorder has
// its half of what is left besides the code and the tables that each process begins with.
enum {
    RECORDER_SHARE = 2,
    PROCESSES_BYTES = 48 << 20,
    RECORDER_MIN_BYTES = 44 << 20, // beside others, of ALL_MIN_BYTES
    ALL_MIN_BYTES = 128 << 20,     // with --listen or --push
    PUSH_SHARE = 5,
    PUSH_MIN_BYTES = 32 << 20, // the libraries that it loads take some
};

// Return the usual memory limit of cairn, a quarter of the available memory: the rest is for the
// program.
static uint64_t usual_memory_bytes(void)
{
    enum {
        SHARE = 4
    };
    return max_u64(memory_limit_here() / SHARE, MEMORY_BUDGET_MIN);
}

static uint64_t max_memory_bytes(const struct record_settings *settings)
{
    const uint64_t given = settings->recorder.max_memory_bytes;
    return given != 0 ? given : usual_memory_bytes();
}

static bool is_alone(const struct record_settings *settings)
{
    return settings->listen.address == NULL && settings->push.url == NULL;
}

// Return the part of it for the recorder itself.
static uint64_t recorder_memory_bytes(const struct record_settings *settings)
{
    const uint64_t all = max_memory_bytes(settings);
    return is_alone(settings)
               ? all
               : max_u64(excess_u64(all, PROCESSES_BYTES) / RECORDER_SHARE, RECORDER_MIN_BYTES);
}

// State of a run: the data of the recorder's callbacks, and the result.
struct run {
    struct strbuf pattern; // owned; of the file name
    bool is_quiet;
    bool without_symbols;
    bool is_printed;          // the summary has been printed
    struct progress progress; // silent until the program has ended
    struct name_cache cache;  // owned
    struct name_sources sources;
    struct background_symbolizer ahead;
    struct jit_names jit;
    struct metrics_server server;
    struct push_process push;
    struct recorder_result result;
};

static void run_release(struct run *run)
{
    recorder_result_release(&run->result);
    push_process_release(&run->push);
    strbuf_release(&run->pattern);
    background_symbolizer_release(&run->ahead);
    jit_names_release(&run->jit);
    name_cache_release(&run->cache);
}

static enum err output_path(void *context, uint32_t pid, struct strbuf *out, struct err_info *info)
{
    struct run *run = context;
    TRY(output_name_expand(strbuf_text(&run->pattern), pid, out, info));
    if (pid != (uint32_t)getpid()) { // else it is only the check before the start
        side_process_send_path(&run->server.side, strbuf_text(out));
        side_process_send_path(&run->push.side, strbuf_text(out));
    }
    return ERR_OK;
}

static enum err reload_server(void *context, struct err_info *info)
{
    struct run *run = context;
    return metrics_server_reload(&run->server, info);
}

static bool has_reloaded(void *context, struct err_info *result)
{
    struct run *run = context;
    return metrics_server_has_reloaded(&run->server, result);
}

static void say_sentence(void *context, const char *sentence)
{
    struct run *run = context;
    CLEANUP(strbuf_release) struct strbuf safe = {0};
    screen_append(&safe, sentence);
    progress_clear(&run->progress);
    (void)fprintf(stderr, "cairn: %s\n", strbuf_text(&safe)); // no other place to report an error
}

// At the end it is too late to begin with names: they are looked up after it anyway, and a thread
// that begins now would only delay that. But a process that waits to end can still be inspected.
static void see_code(void *context,
                     const struct stack_table *stacks,
                     bool is_ending,
                     const struct aside_reader *reader)
{
    struct run *run = context;
    jit_names_see(&run->jit, stacks, reader);
    if (!run->without_symbols && !is_ending) {
        background_symbolizer_see(&run->ahead, stacks);
    }
}

static enum err name_frames(void *context,
                            struct recording *recording,
                            struct string_table *strings,
                            struct rec_symbol_vec *symbols)
{
    struct run *run = context;
    if (!run->is_quiet) {
        progress_init(&run->progress, stderr); // from here on, only cairn writes to the terminal
    }
    CLEANUP(strbuf_release) struct strbuf too_large = {0};
    enum err problem = jit_names_add(&run->jit, recording, strings, symbols, &too_large);
    if (too_large.len > 0) {
        say_sentence(run, strbuf_text(&too_large));
    }
    if (problem == ERR_OK) {
        problem = record_names_add(recording, &run->sources, &run->ahead, strings, symbols,
                                   &run->progress);
    }
    if (problem == ERR_OK) {
        problem = jit_names_merge(recording, strings);
    }
    progress_clear(&run->progress);
    return problem;
}

static void show_progress(void *context, const char *what, uint64_t done, uint64_t total)
{
    struct run *run = context;
    progress_update(&run->progress, what, done, total);
}

static void say_complete(void *context, const struct recording *recording, const char *path)
{
    struct run *run = context;
    progress_clear(&run->progress);
    run->is_printed = true;
    if (!run->is_quiet) {
        run_summary_print(recording, path);
        say_sentence(run, "the recording is complete; the program continues");
    }
}

static MUST_USE enum err find_library(struct strbuf *out, struct err_info *info)
{
    char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (len <= 0) {
        return err_set_errno(info, errno, "cannot find the path of cairn's own executable");
    }
    path[len] = '\0';
    strbuf_append(out, path, (size_t)(strrchr(path, '/') - path));
    strbuf_append_text(out, preload_library);
    TRY(strbuf_result(out));
    if (access(strbuf_text(out), R_OK) != 0) {
        return err_set_errno(info, errno, "cannot read cairn's own library '%s'", strbuf_text(out));
    }
    return ERR_OK;
}

// End in the same way as the program, so that the parent process sees the same status.
static int end_as(int wait_status)
{
    if (!WIFSIGNALED(wait_status)) {
        return WEXITSTATUS(wait_status);
    }
    int number = WTERMSIG(wait_status);
    // The core of the program, if any, is the useful one. A failure to suppress ours is harmless.
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    sigset_t only;
    (void)sigemptyset(&only); // these four cannot fail for a signal that has killed a process
    (void)sigaddset(&only, number);
    (void)sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    (void)sigprocmask(SIG_UNBLOCK, &only, NULL);
    (void)raise(number);
    return SIGNAL_STATUS_BASE + number; // the signal does not kill by default
}

// Return the path of the first process that runs, for the default name of the file.
static const char *executable_of(const struct record_settings *settings, char path[static PATH_MAX])
{
    const pid_t pid = proc_file_living((pid_t)settings->recorder.attach_pids[0]);
    return proc_file_executable(pid, path) ? path : "process";
}

// Return the number in a variable, for tests of cairn itself; 0: it has none.
static uint64_t variable_number(const char *name)
{
    const char *text = getenv(name);
    uint64_t number = 0;
    return text != NULL && number_parse(text, UINT64_MAX, &number) ? number : 0;
}

static bool variable_is(const char *name, const char *value)
{
    const char *is = getenv(name);
    return is != NULL && strcmp(is, value) == 0;
}

// Start the processes of --listen and --push.
static MUST_USE enum err
start_side_processes(const struct record_settings *settings, struct run *run, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf said = {0};
    const uint64_t given = settings->recorder.max_memory_bytes;
    if (!is_alone(settings) && given != 0 && given < ALL_MIN_BYTES && !settings->is_quiet) {
        say_sentence(run, "with --listen or --push, --max-memory counts as 128MiB at least");
    }
    TRY(record_listen_start(&settings->listen, &run->sources, &run->server, &said, info));
    if (said.len > 0 && !settings->is_quiet) {
        say_sentence(run, strbuf_text(&said));
    }
    struct push_options push = settings->push;
    push.memory_max_bytes = max_u64(max_memory_bytes(settings) / PUSH_SHARE, PUSH_MIN_BYTES);
    const enum err err = record_push_start(&push, &run->sources, &run->push, info);
    if (err != ERR_OK) {
        (void)metrics_server_stop(&run->server); // nothing is recorded, so nothing is served
    }
    return err;
}

// Prepare a run up to the start of threads.
static MUST_USE enum err prepare_recording(const struct record_settings *settings,
                                           char **argv,
                                           struct run *run,
                                           struct strbuf *library,
                                           struct err_info *info)
{
    *run = (struct run){.is_quiet = settings->is_quiet,
                        .without_symbols = settings->without_symbols,
                        .sources = {.is_off = settings->without_symbols}};
    if (settings->recorder.attach_count !=
        0) { // the processes may be in a container, usually in one
        run->sources.root_pid = (int)proc_file_living((pid_t)settings->recorder.attach_pids[0]);
    }
    if (name_cache_init(&run->cache) == ERR_OK) {
        run->sources.cache = &run->cache;
    }
    background_symbolizer_init(&run->ahead, &run->sources);
    jit_names_init(&run->jit);
    char attached[PATH_MAX];
    output_name_append_pattern(&run->pattern, settings->output,
                               argv[0] != NULL ? argv[0] : executable_of(settings, attached));
    TRY(find_library(library, info));
    return start_side_processes(settings, run, info);
}

static void stop_side_processes(const struct record_settings *settings, struct run *run)
{
    CLEANUP(strbuf_release) struct strbuf unsent = {0};
    record_push_stop(&run->push, &settings->push, &unsent);
    if (unsent.len > 0) {
        say_sentence(run, strbuf_text(&unsent));
    }
    if (!metrics_server_stop(&run->server)) {
        say_sentence(run, "the server of --listen ended early; the recording is not affected");
    }
}

// Print the summary. It reads the file, and a large recording should not be in memory twice. Small
// ones stay: releasing takes longer than the end of the process.
static void print_summary(struct recorder_result *result, bool is_written)
{
    if (is_written && result->output_path != NULL && result->recording.row_count > ROWS_TWICE_MAX) {
        struct recorder_result tables = {.recording = result->recording, .state = result->state};
        result->recording = (struct recording){0};
        result->state = NULL;
        recorder_result_release(&tables);
        (void)malloc_trim(0);
    }
    run_summary_print(&result->recording, result->output_path);
}

static void record_with(const struct record_settings *settings,
                        char **argv,
                        struct run *run,
                        struct record_outcome *out)
{
    struct err_info info = {0};
    CLEANUP(strbuf_release) struct strbuf library = {0};
    *out = (struct record_outcome){.exit_status = STATUS_USAGE};
    if (prepare_recording(settings, argv, run, &library, &info) != ERR_OK) {
        (void)command_error(&info); // the status is set
        return;
    }
    const char *cgroup_root = getenv("CAIRN_CGROUP_ROOT"); // for tests of cairn itself
    struct recorder_options options = settings->recorder;
    options.argv = argv;
    options.preload_library = strbuf_text(&library);
    options.tool_version = CAIRN_VERSION;
    options.max_memory_bytes = recorder_memory_bytes(settings);
    options.has_usual_memory = max_memory_bytes(settings) >= usual_memory_bytes();
    options.cgroup_root = cgroup_root != NULL ? cgroup_root : "/sys/fs/cgroup";
    if (run->push.report != NULL) {
        options.lost_profiles = &run->push.report->lost_count;
        options.reduced_profiles = &run->push.report->reduced_count;
    }
    options.tells_runtimes = !settings->is_quiet; // it is no error
    options.follow_children = !settings->no_children;
    options.check_unwind = variable_is("CAIRN_CHECK_UNWIND", "1");
    options.sample_seed = variable_number("CAIRN_SAMPLE_SEED");
    options.callbacks = (struct recorder_callbacks){.context = run,
                                                    .output_path = output_path,
                                                    .log = say_sentence,
                                                    .reload = reload_server,
                                                    .has_reloaded = has_reloaded,
                                                    .see_code = see_code,
                                                    .name_frames = name_frames,
                                                    .progress = show_progress,
                                                    .complete = say_complete};
    struct recorder_result *result = &run->result;
    enum err problem = recorder_run(&options, result, &info);
    progress_clear(&run->progress);
    stop_side_processes(settings, run);
    (void)background_symbolizer_end(&run->ahead); // needed if name_frames was not called
    // A recording that could not be written can be summarized all the same.
    if (result->recording.process_count > 0 && !settings->is_quiet && !run->is_printed) {
        print_summary(result, problem == ERR_OK);
    }
    if (problem != ERR_OK && !result->is_reported) {
        (void)command_error(&info); // printed here; the next statement sets the status
    }
    *out = (struct record_outcome){.has_run = result->has_run,
                                   .is_recorded = problem == ERR_OK && result->output_path != NULL,
                                   .wait_status = result->wait_status,
                                   .exit_status = result->exit_status,
                                   .path = result->output_path};
    result->output_path = NULL;
}

void record_program(const struct record_settings *settings, char **argv, struct record_outcome *out)
{
    CLEANUP(run_release) struct run run = {0};
    record_with(settings, argv, &run, out);
}

int record_run(const struct record_settings *settings, char **argv)
{
    static struct run run; // the kernel frees all of it at exit
    struct record_outcome outcome;
    record_with(settings, argv, &run, &outcome);
    background_symbolizer_leave(&run.ahead);
    free(outcome.path);
    if (outcome.has_run && settings->is_strict && !outcome.is_recorded) {
        return STATUS_USAGE;
    }
    return outcome.has_run ? end_as(outcome.wait_status) : outcome.exit_status;
}
