// SPDX-License-Identifier: MIT
// cmd_ctl: `cairn ctl FILE|PID ACTION`: controls a running recording.
//
// Context: H. Exit status: 0 done, 1 the recorder refused, 2 no such recording.
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "cli/commands/commands.h"
#include "cli/commands/trim_process.h"
#include "cli/text/screen_text.h"
#include "host/text/json_writer.h"
#include "host/text/number.h"
#include "recorder/control/control_client.h"

struct ctl_fields {
    bool use_json;
};

// clang-format off
static const struct option_spec specs[] = {
    OPTION(0, "json", FLAG, NULL, offsetof(struct ctl_fields, use_json),
           "write the status, or the outcome of trim, as JSON"),
};
// clang-format on

static const char *const actions[] = {"start",  "stop",     "mark", "checkpoint",
                                      "rotate", "snapshot", "trim", "detach",
                                      "reload", "status",   NULL};

static bool is_action(const char *name)
{
    size_t i = 0;
    while (actions[i] != NULL && strcmp(actions[i], name) != 0) {
        i++;
    }
    return actions[i] != NULL;
}

static void print_safe(const char *text, size_t len, const char *end)
{
    CLEANUP(strbuf_release) struct strbuf part = {0};
    CLEANUP(strbuf_release) struct strbuf safe = {0};
    strbuf_append(&part, text, len);
    screen_append(&safe, strbuf_text(&part));
    (void)printf("%s%s", strbuf_text(&safe), end); // errors are found at the end
}

static void write_value(struct json_writer *w, const char *value)
{
    uint64_t number;
    if (number_parse(value, UINT64_MAX, &number)) {
        json_value_u64(w, number);
    } else {
        json_value_string(w, value);
    }
}

// Print lines "key<TAB>value", as text or as a JSON object. Split `reply` in place.
static void print_table(char *reply, bool use_json)
{
    struct json_writer w;
    if (use_json) {
        json_to_stream(&w, stdout, JSON_COMPACT);
    }
    for (char *line = reply; line != NULL && *line != '\0';) {
        char *next = strchr(line, '\n');
        if (next != NULL) {
            *next++ = '\0';
        }
        char *value = strchr(line, '\t');
        if (value != NULL) {
            *value++ = '\0';
            if (use_json) {
                json_key(&w, line);
                write_value(&w, value);
            } else {
                (void)printf("%-14s", line);
                print_safe(value, strlen(value), "\n");
            }
        }
        line = next;
    }
    if (use_json) {
        (void)!json_finish(&w); // an error of the stream is found at the end
        (void)putchar('\n');    // an error of the stream is found at the end
    }
}

// Ask for the result of "reload" until there is one.
static MUST_USE enum err
wait_for_reload(const char *recording, struct strbuf *reply, struct err_info *info)
{
    enum {
        PATIENCE_MS = 20000,
        PAUSE_MS = 20
    };
    for (int waited_ms = 0; waited_ms < PATIENCE_MS; waited_ms += PAUSE_MS) {
        TRY(control_ask(recording, "reloaded", NULL, reply, info));
        if (reply->len > 0) {
            return ERR_OK;
        }
        clock_sleep_ns(PAUSE_MS * NS_PER_MS); // a shorter pause does no harm
    }
    return err_set(info, ERR_DEAD, "the server of --listen does not answer");
}

static int ask_recorder(const char *recording, const char *action, const char *text, bool use_json)
{
    CLEANUP(strbuf_release) struct strbuf reply = {0};
    struct err_info info = {0};
    enum err problem = control_ask(recording, action, text, &reply, &info);
    if (problem == ERR_OK && strcmp(action, "reload") == 0) {
        problem = wait_for_reload(recording, &reply, &info);
    }
    if (problem != ERR_OK) {
        const int status = command_error(&info);
        return problem == ERR_INVALID ? STATUS_FOUND : status;
    }
    if (strcmp(action, "status") == 0 && reply.data != NULL) {
        print_table(reply.data, use_json);
    } else {
        print_safe(strbuf_text(&reply), reply.len, "\n");
    }
    return command_finish_output(STATUS_OK);
}

// Return the process to trim: the one that was named, unless that is the recorder.
static MUST_USE enum err find_process(const char *recording, int *out, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf reply = {0};
    uint64_t named = 0;
    uint64_t recorder = 0;
    uint64_t program = 0;
    TRY(control_ask(recording, "status", NULL, &reply, info));
    (void)number_parse(recording, INT32_MAX, &named); // 0: a file
    const struct {
        const char *key;
        uint64_t *value;
    } wanted[] = {{"recorder_pid\t", &recorder}, {"program_pid\t", &program}};
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        const char *at = strstr(strbuf_text(&reply), wanted[i].key);
        at = at != NULL ? at + strlen(wanted[i].key) : "";
        (void)number_take(&at, 10, wanted[i].value); // 0 if it is missing
    }
    *out = (int)(named != 0 && named != recorder ? named : program);
    return *out > 0 && program <= INT32_MAX
               ? ERR_OK
               : err_set(info, ERR_NOT_FOUND,
                         "no process of the recording is known; use 'cairn "
                         "trim -p PID'");
}

static int trim(const char *recording, bool use_json)
{
    struct err_info info = {0};
    int pid = 0;
    enum err problem = find_process(recording, &pid, &info);
    problem = problem == ERR_OK ? trim_process(pid, TRIM_PATIENCE_MS_BY_DEFAULT, use_json, &info)
                                : problem;
    return problem != ERR_OK ? command_error(&info) : command_finish_output(STATUS_OK);
}

static int run(void *context, int count, char **operands)
{
    const struct ctl_fields *fields = context;
    if (count < 2) {
        return command_refuse(&command_ctl, "FILE or PID and ACTION are required");
    }
    const char *action = operands[1];
    if (!is_action(action)) {
        return command_refuse(&command_ctl, "unknown action '%.40s'", action);
    }
    const bool has_text = strcmp(action, "mark") == 0;
    if (count != 2 + has_text) {
        return command_refuse(&command_ctl, "'%s' takes %s", action,
                              has_text ? "one text; quote it" : "nothing more");
    }
    if (strcmp(action, "trim") == 0) {
        return trim(operands[0], fields->use_json);
    }
    return ask_recorder(operands[0], action, has_text ? operands[2] : NULL, fields->use_json);
}

const struct command command_ctl = {
    .name = "ctl",
    .summary = "control a running recording",
    .synopsis = "[options] FILE|PID ACTION",
    .description =
        "Control a running 'cairn record'. Name it by its output file, its process id, or\n"
        "the process id of a program that it records. ACTION is one of\n\n"
        "  start         start or resume recording\n"
        "  stop          pause recording of allocations; frees are still followed\n"
        "  mark TEXT     set a mark on the time line\n"
        "  checkpoint    update the file now, and wait for it\n"
        "  rotate        update the file now, and keep it also under a name with the time\n"
        "  snapshot      take a snapshot of the resident memory now, and keep it\n"
        "  trim          let the program give free memory back, as 'cairn trim' does\n"
        "  detach        leave a process that cairn has attached to; it runs on\n"
        "  reload        read the certificate and the token of --listen anew\n"
        "  status        print the state of the recording\n\n"
        "The exit status is 1 if the recorder refuses, 2 if there is no such recording.\n",
    .options = {.specs = specs, .count = ARRAY_LEN(specs), .follows_operands = true},
    .examples = "cairn ctl run.cairn mark 'first 1000 requests'\n"
                "cairn ctl 4711 checkpoint\n",
    .words = actions,
    .words_after = 1,
    .fields_bytes = sizeof(struct ctl_fields),
    .run = run,
};
