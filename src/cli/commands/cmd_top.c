// SPDX-License-Identifier: MIT
// cmd_top: `cairn top PROGRAM ARGS...`, `cairn top FILE` and `cairn top -p PID`: shows a running
// program's heap as top(1) shows processes.
//
// Context: H. Exit status: 0, or the program's if it was started here and has ended; 2 if nothing
// can be shown.

#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/commands/commands.h"
#include "cli/options/filter_options.h"
#include "cli/options/name_options.h"
#include "cli/options/output_name.h"
#include "cli/top/top_terminal.h"
#include "cli/top/top_watch.h"
#include "formats/import/input_file.h"
#include "host/os/file.h"

enum {
    LIMIT_BY_DEFAULT = 20,
    INTERVAL_MS_BY_DEFAULT = 2000,
    INTERVAL_MS_MIN = 100,
};

struct top_fields {
    uint32_t pid;
    const char *output;
    const char *program_output;
    uint64_t interval_ms;
    const char *sort;
    const char *filter;
    bool is_plain;
    uint32_t count;
    uint32_t limit;
    struct name_words names;
};

static const struct top_fields defaults = {
    .interval_ms = INTERVAL_MS_BY_DEFAULT, .sort = "live", .limit = LIMIT_BY_DEFAULT};

#define FIELD(field) offsetof(struct top_fields, field)

static const char *const sort_choices[] = {"live",        "change", "rate", "temporary",
                                           "allocations", "peak",   NULL};

// clang-format off
static const struct option_spec specs[] = {
    OPTION('p', "pid", COUNT, "PID", FIELD(pid),
           "show a process that runs: its recording, or else attach to it; cairn detaches from it "
           "when you quit, and it runs on", .minimum = 1),
    OPTION('d', "interval", DURATION_MS, "TIME", FIELD(interval_ms),
           "time between two updates: 1, 500ms, 1m (default: 2s); longer if an update takes long"),
    OPTION(0, "sort", CHOICE, "COLUMN", FIELD(sort),
           "live, change, rate, temporary, allocations or peak (default: live)",
           .choices = sort_choices),
    OPTION(0, "filter", TEXT, "TEXT", FIELD(filter), FILTER_TEXT_HELP),
    OPTION(0, "plain", FLAG, NULL, FIELD(is_plain),
           "write each update as lines of text: for screen readers, pipes and logs"),
    OPTION(0, "count", COUNT, "N", FIELD(count),
           "with --plain: quit after N updates; 0: at the end of the run (default: 0)"),
    OPTION('n', "limit", COUNT, "N", FIELD(limit),
           "with --plain: call sites in each update; 0: all (default: 20)"),
    OPTION('o', "output", NAME, "FILE", FIELD(output),
           "recording to write, if top starts one (default: cairn.PROGRAM.%p.cairn); %p is the "
           "process id of the recorder, %h the host name"),
    OPTION(0, "program-output", NAME, "FILE", FIELD(program_output),
           "file for standard output and error of PROGRAM (default: as the recording, ending in "
           ".output)"),
};
// clang-format on

static MUST_USE enum err
check_fields(const struct top_fields *fields, int operands, struct err_info *info)
{
    const struct mistake mistakes[] = {
        {fields->pid != 0 && operands > 0, "--pid and a PROGRAM or FILE contradict each other"},
        {fields->pid == 0 && operands == 0, "no PROGRAM, FILE or --pid given"},
        {fields->interval_ms < INTERVAL_MS_MIN, "--interval: the shortest is 100ms"},
        {fields->count != 0 && !fields->is_plain, "--count needs --plain"},
    };
    return mistakes_check(mistakes, ARRAY_LEN(mistakes), info);
}

static int watch_program(const struct top_fields *fields, const struct top_run_options *run_options)
{
    struct err_info info = {0};
    int status = STATUS_USAGE;
    bool has_ended = false;
    CLEANUP(top_run_release) struct top_run run = TOP_RUN_INIT;
    // Its cache and servers must stay as long as the thread that reads.
    static struct name_places names;
    if (!fields->is_plain && top_terminal_check(&info) != ERR_OK) {
        return command_error(&info);
    }
    enum err problem = top_run_open(&run, run_options, &status, &info);
    if (problem != ERR_OK) {
        if (info.text[0] != '\0' || problem == ERR_NO_MEMORY) { // else the recorder has printed
            (void)command_error(&info);                         // printed here; the status is set
        }
        return status;
    }
    const struct top_watch_options options = {.run = &run,
                                              .sources = &names.sources,
                                              .interval_ms = fields->interval_ms,
                                              .sort = top_column_find(fields->sort),
                                              .filter = fields->filter,
                                              .count = fields->count,
                                              .limit = fields->limit};
    problem = name_places_init(&names, &fields->names, &info);
    if (problem == ERR_OK) {
        problem = fields->is_plain ? top_watch_plain(&options, &has_ended, &info)
                                   : top_watch_screen(&options, &has_ended, &info);
    }
    status = top_run_leave(&run, has_ended);
    if (problem != ERR_OK) {
        return command_error(&info);
    }
    return fields->is_plain ? command_finish_output(status) : status;
}

// Whether a word names a recording or another tool's file, and no program.
static bool is_plain_profile(const char *word)
{
    return (strchr(word, '/') != NULL || !file_is_in_path(word)) && access(word, X_OK) != 0 &&
           input_is_profile(word);
}

static int run(void *context, int count, char **operands)
{
    const struct top_fields *fields = context;
    struct err_info info = {0};
    if (check_fields(fields, count, &info) != ERR_OK) {
        return command_usage_error(&command_top, &info);
    }
    const bool is_file = count == 1 && !command_is_program(operands) &&
                         (output_name_is_recording(operands[0]) || is_plain_profile(operands[0]));
    const struct top_run_options options = {
        .argv = count > 0 && !is_file ? operands : NULL,
        .file = is_file ? operands[0] : NULL,
        .pid = fields->pid,
        .output = fields->output,
        .program_output = fields->program_output,
    };
    return watch_program(fields, &options);
}

const struct command command_top = {
    .name = "top",
    .summary = "watch the heap of a running program",
    .synopsis = "[options] [--] PROGRAM ARGS... | FILE | -p PID",
    .description =
        "Show live, growing and temporary memory by call site while a program runs. Start\n"
        "and record PROGRAM, or show the recording FILE that is in progress, or the\n"
        "process PID. F1 explains columns and keys.\n\n"
        "The output of PROGRAM goes to a file, and its input is /dev/null. Leaving with q\n"
        "or Ctrl-C lets PROGRAM run on, and its recording too. The exit status is that of\n"
        "PROGRAM if it has ended, else 0; 2 if nothing can be shown.\n",
    .examples = "cairn top ./server --port 80\n"
                "cairn top -p 4711\n"
                "cairn top --plain --interval 10s --count 6 run.cairn\n",
    .options = {.specs = specs,
                .count = ARRAY_LEN(specs),
                .shared = {NAME_OPTIONS(top_fields, names)}},
    .fields_bytes = sizeof(struct top_fields),
    .defaults = &defaults,
    .run = run,
};
