// SPDX-License-Identifier: MIT
// cmd_record: `cairn record [options] -- PROGRAM ARGS...`, and `cairn PROGRAM ARGS...` for short.
//
// `cairn record -p PID` attaches to processes instead.
//
// Runs the program under the recorder, then prints on stderr in a few lines where its memory went.
// stdout belongs to the program alone. The exit status is the program's. If a signal killed the
// program, cairn raises the same signal, so that the parent process sees the same status. The
// command lines of heaptrack work; an option without a counterpart is refused with a sentence.
// Context: H.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "cli/command_table.h"
#include "cli/options/option_values.h"
#include "cli/options/output_name.h"
#include "cli/record/record_collectors.h"
#include "cli/record/record_follow.h"
#include "cli/record/record_options.h"
#include "cli/record/record_run.h"
#include "formats/import/input_file.h"
#include "host/os/file.h"
#include "host/text/number.h"

struct record_fields {
    command_list commands;
    struct record_words words;
    const char *mode;
    struct option_word_vec attached; // uses of --pid and --name
    struct option_word_vec labels;
    const char *push_auth;
    const char *rotate;
    bool follows;
    bool is_analyze;
    bool is_version;
    bool is_ignored; // accepted options without an effect
};

static const struct record_fields defaults = {.words = RECORD_WORDS_DEFAULTS};

#define FIELD(field) offsetof(struct record_fields, field)

// clang-format off
static const struct option_spec specs[] = {
    OPTION('o', "output", NAME, "FILE", FIELD(words.settings.output),
           "file to write (default: cairn.PROGRAM.%p.cairn); %p is the process id, %h the host "
           "name; missing directories are created"),
    OPTION('p', "pid", EACH, "PID,...", FIELD(attached),
           "record running processes until they end, --duration is over, Ctrl-C or 'cairn ctl FILE "
           "detach'; they run on afterwards; repeatable"),
    OPTION(0, "name", EACH, "NAME", FIELD(attached),
           "like --pid, for all processes whose command or executable has this name; repeatable"),
    OPTION(0, "follow", FLAG, NULL, FIELD(follows),
           "with --name: wait for processes and record each when it starts, until Ctrl-C or "
           "--duration; one that ends within a moment is missed"),
    OPTION(0, "verbose", FLAG, NULL, FIELD(words.settings.recorder.tells_stops),
           "print which rule a lane broke that the program overwrote; with --pid or --name also "
           "how long the threads of the processes were stopped, and which functions are hooked"),
    OPTION(0, "mode", TEXT, "MODE", FIELD(mode),
           "permissions of the file, in octal as for chmod (default: 600, because command lines "
           "may contain secrets)"),
    OPTION(0, "strict", FLAG, NULL, FIELD(words.settings.is_strict),
           "exit with status 2 if the recording cannot be written, even if PROGRAM succeeds"),
    OPTION('q', "quiet", FLAG, NULL, FIELD(words.settings.is_quiet), "print nothing except errors"),
    OPTION('a', "analyze", FLAG, NULL, FIELD(is_analyze),
           "open a recording: same as 'cairn analyze FILE'"),
    OPTION(0, "record-only", FLAG, NULL, FIELD(is_ignored),
           "accepted for compatibility with heaptrack; has no effect"),
    OPTION(0, "checkpoint-interval", DURATION_MS, "TIME",
           FIELD(words.settings.recorder.checkpoint_interval_ms),
           "how often to update the file during the run: 10, 500ms, 1m (default: 10s)"),
    OPTION(0, "start-paused", FLAG, NULL, FIELD(words.settings.recorder.run.is_paused),
           "start recording on 'cairn ctl FILE start'"),
    OPTION(0, "oom-guard", FLAG, NULL, FIELD(words.settings.recorder.guards_oom),
           "update the file each second when the memory limit of the cgroup or of the machine is "
           "near, so that it shows the heap before an OOM kill"),
    OPTION(0, "rotate", TEXT, "TIME|SIZE", FIELD(rotate),
           "also keep the recording so far under a name with the time, each TIME (1h, 1d) or each "
           "time that the file has grown by SIZE (512M), and at the end",
           .group = "Files that are kept"),
    OPTION(0, "keep", DURATION_MS, "TIME", FIELD(words.settings.recorder.rotation.keep_ms),
           "with --rotate or --follow: remove kept files older than TIME: 7d; needs --output "
           "without %p"),
    OPTION(0, "max-disk", SIZE, "SIZE", FIELD(words.settings.recorder.rotation.max_bytes),
           "with --rotate or --follow: remove the oldest kept files so that all take at most SIZE; "
           "needs --output without %p"),
    OPTION(0, "listen", TEXT, "ADDR", FIELD(words.settings.listen.address),
           "serve /metrics and /debug/pprof/heap while PROGRAM runs: a path with a slash for a "
           "Unix socket, or HOST:PORT",
           .group = "Serve"),
    OPTION(0, "token-file", NAME, "FILE", FIELD(words.settings.listen.token_file),
           "with --listen HOST:PORT: read the access token from FILE, or create FILE with a new "
           "one (default: print a new token)"),
    OPTION(0, "no-token", FLAG, NULL, FIELD(words.settings.listen.no_token),
           "with --listen HOST:PORT: serve anyone who can reach the port"),
    OPTION(0, "tls", NAME, "FILE", FIELD(words.settings.listen.tls_file),
           "with --listen HOST:PORT: serve https with the certificate and the key in FILE (PEM); "
           "beyond the loopback a token needs this"),
    OPTION(0, "push", TEXT, "URL", FIELD(words.settings.push.url),
           "send profiles to the collector at URL, which takes Pyroscope's ingest API, while "
           "PROGRAM runs and at the end",
           .group = "Push"),
    OPTION(0, "push-interval", DURATION_MS, "TIME", FIELD(words.settings.push.interval_ms),
           "with --push: how often to send a profile of the changes since the previous one "
           "(default: 15s)"),
    OPTION(0, "push-auth", NAME, "FILE", FIELD(push_auth),
           "with --push: read a token or USER:PASSWORD from FILE (default: the variable "
           "CAIRN_PUSH_AUTH)"),
    OPTION(0, "push-ca", NAME, "FILE", FIELD(words.settings.push.ca_file),
           "with --push: trust the certificates in FILE (PEM) instead of the system's"),
    OPTION(0, "push-spool", NAME, "DIR", FIELD(words.settings.push.spool),
           "with --push: keep profiles in DIR until the collector has taken them, also after the "
           "end (default: in memory)"),
    OPTION(0, "push-spool-size", SIZE, "SIZE", FIELD(words.settings.push.spool_max_bytes),
           "with --push: when more than SIZE of profiles wait, drop the oldest and count them "
           "(default: 64MiB)"),
    OPTION(0, "push-max-samples", COUNT, "N", FIELD(words.settings.push.limits.samples),
           "with --push: the most samples that the collector takes in a profile; beyond, threads "
           "are merged, then the rarest call stacks (default: 16000, as Pyroscope)", .minimum = 2),
    OPTION(0, "push-max-size", SIZE, "SIZE", FIELD(words.settings.push.limits.bytes),
           "with --push: the largest profile, unpacked, that the collector takes (default: 4MiB, "
           "as Pyroscope)"),
    OPTION(0, "push-timeout", DURATION_MS, "TIME", FIELD(words.settings.push.timeout_ms),
           "with --push: how long to wait for the answer to a request, and at the end for all of "
           "them (default: 10s)"),
    OPTION(0, "label", EACH, "NAME=VALUE", FIELD(labels),
           "with --push: a label of the profiles; service_name=VALUE names the service (default: "
           "the name of the program); repeatable"),
    OPTION(0, "output-file", NAME, "FILE", FIELD(words.settings.output), NULL, .is_hidden = true),
    OPTION('r', "raw", FLAG, NULL, FIELD(is_ignored), NULL, .is_hidden = true),
    OPTION('v', "version", FLAG, NULL, FIELD(is_version), NULL, .is_hidden = true),
    OPTION('i', "interpret", REFUSED, "FILE", 0,
           "recordings need no interpretation step; run 'cairn report FILE'"),
    OPTION('d', "debug", REFUSED, NULL, 0,
           "cairn does not start a debugger; run 'gdb --args cairn PROGRAM'"),
    OPTION(0, "use-inject", REFUSED, NULL, 0,
           "there is only one way to record; leave the option out"),
    OPTION(0, "asan", REFUSED, NULL, 0,
           "AddressSanitizer replaces malloc itself; record a build without it"),
};
// clang-format on

// Suggest a command for a word like `reprot`, which is not a program.
static int suggest_command(command_list commands, const char *word)
{
    enum {
        STATUS_NO_PROGRAM = 127
    };
    const struct command *near = strchr(word, '/') == NULL ? command_suggest(commands, word) : NULL;
    if (near == NULL || file_is_in_path(word)) {
        return STATUS_OK;
    }
    struct err_info info;
    (void)err_set(&info, ERR_NOT_FOUND, "program '%.100s' not found; did you mean 'cairn %s'?",
                  word, near->name);
    (void)command_error(&info); // printed here; the status is a shell's
    return STATUS_NO_PROGRAM;
}

// Refuse a word that other tools have for reading a file, and that is a program of another kind.
static MUST_USE enum err check_not_reading(int count, char *const *operands, struct err_info *info)
{
    static const char *const words[] = {"import", "open", "view", "show", "convert"};
    for (size_t i = 0; count == 2 && i < ARRAY_LEN(words); i++) {
        if (strcmp(operands[0], words[i]) == 0 && input_is_profile(operands[1])) {
            return err_set(info, ERR_INVALID,
                           "'%s' is not a command of cairn: each one reads '%.200s' as it is, "
                           "'cairn report' for example ('cairn -- %s' records that program)",
                           words[i], operands[1], words[i]);
        }
    }
    return ERR_OK;
}

// Parse the permissions of --mode. The owner can read and write the file; no user can execute it.
static bool parse_mode(const char *text, uint32_t *out)
{
    uint64_t mode;
    const bool is_octal = number_take(&text, 8, &mode) && *text == '\0';
    *out = is_octal ? (uint32_t)mode : 0;
    return is_octal && mode <= 0666 && (mode & 0600) == 0600 && (mode & 0111) == 0;
}

// Without a fixed name, kept files of earlier runs would not be found, and the disk not be bounded.
static MUST_USE enum err check_rotation(const struct record_fields *fields,
                                        struct record_settings *settings,
                                        struct err_info *info)
{
    enum {
        SHORTEST_MS = 1000
    };
    struct rotation_options *rotation = &settings->recorder.rotation;
    const bool is_bounded = rotation->keep_ms != 0 || rotation->max_bytes != 0;
    const bool is_fixed =
        settings->output != NULL ? strstr(settings->output, "%p") == NULL : fields->follows;
    if (is_bounded && fields->rotate == NULL && !fields->follows) {
        return err_set(info, ERR_INVALID, "--keep and --max-disk need --rotate or --follow");
    }
    if (fields->rotate != NULL && !duration_parse(fields->rotate, &rotation->every_ms) &&
        (!size_parse(fields->rotate, &rotation->every_bytes) || rotation->every_bytes == 0)) {
        return err_set(info, ERR_INVALID,
                       "--rotate: '%.40s' is neither a time such as 1h nor a size such as 512M",
                       fields->rotate);
    }
    const struct mistake mistakes[] = {
        {rotation->every_ms != 0 && rotation->every_ms < SHORTEST_MS,
         "--rotate: the shortest time is a second"},
        {is_bounded && !is_fixed,
         "--keep and --max-disk need --output with a name without %p, so that the files of earlier "
         "runs are found"},
    };
    return mistakes_check(mistakes, ARRAY_LEN(mistakes), info);
}

// --follow takes names, which may mean nothing yet.
static MUST_USE enum err check_follow(const struct record_fields *fields, struct err_info *info)
{
    if (!fields->follows) {
        return ERR_OK;
    }
    if (fields->attached.len == 0) {
        return err_set(info, ERR_INVALID, "--follow needs --name");
    }
    for (size_t i = 0; i < fields->attached.len; i++) {
        const struct option_word *word = fields->attached.items + i;
        if (word->spec->letter == 'p' || word->text[0] == '\0') {
            return err_set(info, ERR_INVALID,
                           word->text[0] == '\0' ? "--name: the name is empty"
                                                 : "--pid and --follow cannot be combined");
        }
    }
    return ERR_OK;
}

// Refuse invalid and contradictory options.
static MUST_USE enum err check_settings(const struct record_fields *fields,
                                        struct record_settings *settings,
                                        struct err_info *info)
{
    if (settings->output != NULL && strcmp(settings->output, "-") == 0) {
        return err_set(info, ERR_INVALID,
                       "--output: standard output belongs to the program; give a file name");
    }
    if (fields->mode != NULL && !parse_mode(fields->mode, &settings->recorder.file_mode)) {
        return err_set(info, ERR_INVALID, "--mode: '%.20s' is not a mode such as 600, 640 or 644",
                       fields->mode);
    }
    const struct mistake mistakes[] = {
        {settings->recorder.run.is_paused && settings->recorder.run.delay_ms != 0,
         "--delay and --start-paused cannot be combined"},
    };
    TRY(mistakes_check(mistakes, ARRAY_LEN(mistakes), info));
    TRY(check_rotation(fields, settings, info));
    TRY(check_follow(fields, info));
    return record_listen_check(&settings->listen, info);
}

static int
run_attached(const struct record_fields *fields, struct record_settings settings, char **argv)
{
    enum {
        STATUS_CANNOT_RECORD = 126
    };
    struct err_info info = {0};
    if (fields->follows) {
        return record_follow(&settings, &fields->attached);
    }
    CLEANUP(attach_targets_release) struct attach_targets targets = {0};
    const enum err err = attach_targets_find(&fields->attached, &targets, &info);
    if (err == ERR_INVALID) {
        return command_usage_error(&command_record, &info);
    }
    if (err != ERR_OK) {
        (void)command_error(&info); // the status is the one of a program that cannot be recorded
        return STATUS_CANNOT_RECORD;
    }
    settings.recorder.attach_pids = targets.pids.items;
    settings.recorder.attach_count = targets.pids.len;
    settings.recorder.attaches_by_name = targets.is_by_name;
    return record_run(&settings, argv);
}

static int run_program(const struct record_fields *fields, char **argv)
{
    struct err_info info = {0};
    struct record_settings settings;
    CLEANUP(push_inputs_release) struct push_inputs inputs = {0};
    CLEANUP(allocator_names_release) struct allocator_name_vec names = {0};
    if (record_words_take(&fields->words, &names, &settings, &info) != ERR_OK ||
        check_settings(fields, &settings, &info) != ERR_OK ||
        record_push_prepare(&fields->labels, fields->push_auth, &settings.push, &inputs, &info) !=
            ERR_OK) {
        return command_usage_error(&command_record, &info);
    }
    if (settings.push.url != NULL) { // each profile is made of a checkpoint; 0: they are off
        settings.recorder.checkpoint_interval_ms =
            min_u64(settings.recorder.checkpoint_interval_ms, settings.push.interval_ms);
    }
    if (fields->attached.len != 0 && argv[0] == NULL) {
        return run_attached(fields, settings, argv);
    }
    if (fields->attached.len != 0 || argv[0] == NULL) {
        return command_refuse(&command_record,
                              fields->attached.len != 0
                                  ? "--pid or --name and a PROGRAM contradict each other"
                                  : "no PROGRAM given");
    }
    int status = suggest_command(fields->commands, argv[0]);
    return status != STATUS_OK ? status : record_run(&settings, argv);
}

// Whether a size follows --sample as a word of its own, which is taken for the program.
static bool lacks_equals_sign(char *const *operands)
{
    uint64_t bytes;
    return operands[0] != NULL && strcmp(operands[-1], "--sample") == 0 &&
           size_parse(operands[0], &bytes) && access(operands[0], F_OK) != 0;
}

static int run(void *context, int count, char **operands)
{
    const struct record_fields *fields = context;
    if (fields->is_version) {
        return command_run(fields->commands, &command_version, 1, operands - 1);
    }
    // "--" before the operand makes it a program in each case.
    const bool is_file = count > 0 && !command_is_program(operands) &&
                         access(operands[0], F_OK) == 0 && output_name_is_recording(operands[0]);
    if (fields->is_analyze || is_file) {
        return command_run(fields->commands, &command_analyze, count + 1, operands - 1);
    }
    struct err_info info = {0};
    if (!command_is_program(operands) && check_not_reading(count, operands, &info) != ERR_OK) {
        return command_error(&info);
    }
    if (lacks_equals_sign(operands)) {
        return command_refuse(&command_record, "--sample: write --sample=BYTES, in one word");
    }
    return run_program(fields, operands);
}

const struct command command_record = {
    .name = "record",
    .summary = "run a program and record its memory allocations",
    .synopsis = "[options] [--] PROGRAM ARGS... | -p PID,... | --name NAME",
    .description =
        "Run PROGRAM and record every allocation of it and its child processes, with the\n"
        "call stack. A summary is printed to stderr when PROGRAM ends. The word record\n"
        "can be omitted: 'cairn PROGRAM ARGS...'.\n\n"
        "PROGRAM keeps its standard streams and signals. The exit status is that of\n"
        "PROGRAM, or 127 if it does not exist, 126 if it cannot be run or recorded, and 2\n"
        "for a usage error or an output file that cannot be written.\n",
    .examples = "cairn record -o run.cairn ./app --fast input.txt\n"
                "cairn record -p 4711 --duration 30s -o server.cairn\n"
                "cairn record --sample --listen 127.0.0.1:9464 ./server\n",
    .options = {.specs = specs,
                .count = ARRAY_LEN(specs),
                .shared = {RECORD_OPTIONS(record_fields, words)}},
    .reads_commands = true,
    .fields_bytes = sizeof(struct record_fields),
    .defaults = &defaults,
    .run = run,
};
