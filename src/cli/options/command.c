// SPDX-License-Identifier: MIT
// command: parses command lines and prints messages. See command.h.
#include "cli/options/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "cli/options/spelling.h"
#include "cli/text/screen_text.h"
#include "host/containers/memory_end.h"
#include "host/text/number.h"

enum {
    WIDTH_DEFAULT = 80,
    WIDTH_MAX = 160,
};

// Print one line; `wrong`: the command that was used wrongly, or NULL. If there is no memory to
// make the text safe for the screen, say only that.
static int print_error(const struct err_info *info, const struct command *wrong)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    screen_append(&text, err_text(info));
    // A failed write to stderr cannot be reported anywhere.
    (void)fprintf(stderr, "cairn: %s",
                  text.failed ? err_text(&(struct err_info){0}) : strbuf_text(&text));
    (void)(wrong != NULL ? fprintf(stderr, "; see 'cairn help %s'\n", wrong->name)
                         : fputc('\n', stderr));
    return STATUS_USAGE;
}

int command_error(const struct err_info *info)
{
    return print_error(info, NULL);
}

int command_usage_error(const struct command *command, const struct err_info *info)
{
    return print_error(info, command);
}

int command_refuse(const struct command *command, const char *format, ...)
{
    struct err_info info = {0};
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(info.text, sizeof(info.text), format, arguments); // it may truncate
    va_end(arguments);
    return command_usage_error(command, &info);
}

// Parse the command line into `fields` and run the command.
static int parse_and_run(const struct command *command, int argc, char **argv, void *fields)
{
    struct err_info info = {0};
    int first = 0;
    switch (options_parse(command->options, argc, argv, fields, &first, &info)) {
    case OPTIONS_HELP:
        return command_print_help(command);
    case OPTIONS_WRONG:
        return command_usage_error(command, &info);
    case OPTIONS_OK:
        break;
    }
    if (command->takes_one_file && argc - first != 1) {
        return command_refuse(command,
                              argc == first ? "no FILE given" : "only one FILE can be given");
    }
    return command->run(fields, argc - first, argv + first);
}

const struct command *command_find(command_list commands, const char *name)
{
    for (command_list command = commands; *command != NULL; command++) {
        if (strcmp((*command)->name, name) == 0) {
            return *command;
        }
    }
    return NULL;
}

const struct command *command_suggest(command_list commands, const char *name)
{
    const struct command *best = NULL;
    unsigned best_distance = SPELLING_DISTANCE_MAX + 1;
    for (command_list command = commands; *command != NULL; command++) {
        const unsigned distance = spelling_distance(name, (*command)->name);
        if (distance < best_distance) {
            best = *command;
            best_distance = distance;
        }
    }
    return best;
}

int command_run(command_list commands, const struct command *command, int argc, char **argv)
{
    void *fields = calloc(1, command->fields_bytes + 1); // a command may have none
    if (fields == NULL) {
        return command_error(&(struct err_info){.code = ERR_NO_MEMORY});
    }
    if (command->defaults != NULL) {
        memcpy(fields, command->defaults, command->fields_bytes);
    }
    if (command->reads_commands) {
        *(command_list *)fields = commands;
    }
    memory_end_forget();
    const int status = parse_and_run(command, argc, argv, fields);
    options_release(command->options, fields);
    free(fields);
    return status;
}

static void print_examples(const char *lines)
{
    if (lines == NULL) {
        return;
    }
    (void)printf("\nExamples:\n");
    while (*lines != '\0') {
        const int len = (int)strcspn(lines, "\n");
        (void)printf("  %.*s\n", len, lines);
        lines += len + 1;
    }
}

int command_print_help(const struct command *command)
{
    (void)printf("Usage: cairn %s %s\n\n%s\n", command->name, command->synopsis,
                 command->description);
    (void)printf("Options:\n");
    options_print(command->options, stdout);
    print_examples(command->examples);
    return command_finish_output(STATUS_OK);
}

int command_finish_output(int status)
{
    if (fflush(stdout) == 0 && ferror(stdout) == 0) {
        return status;
    }
    // The failed write may be older than errno, which another call may have set. Writing once more
    // to a broken output sets errno to the reason.
    errno = EIO;
    (void)!write(STDOUT_FILENO, "\n", 1);
    if (errno != EPIPE) {
        struct err_info info;
        (void)err_set_errno(&info, errno, "cannot write the output"); // printed below
        (void)command_error(&info);
    }
    return STATUS_USAGE;
}

int command_end(enum err problem, const struct err_info *info, int status)
{
    problem = problem == ERR_OK ? memory_end_result() : problem;
    return problem == ERR_OK ? command_finish_output(status) : command_error(info);
}

enum json_style command_json_style(void)
{
    return isatty(STDOUT_FILENO) == 1 ? JSON_INDENTED : JSON_COMPACT;
}

bool command_use_color(int fd)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return isatty(fd) == 1 && (no_color == NULL || no_color[0] == '\0') && term != NULL &&
           term[0] != '\0' && strcmp(term, "dumb") != 0;
}

unsigned command_width(int fd)
{
    struct winsize size;
    const char *variable = getenv("COLUMNS");
    uint64_t columns = WIDTH_DEFAULT;
    if (isatty(fd) == 1 && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        columns = size.ws_col;
    } else if (variable != NULL && !number_parse(variable, UINT32_MAX, &columns)) {
        return WIDTH_DEFAULT;
    }
    return columns < COMMAND_WIDTH_MIN ? COMMAND_WIDTH_MIN : (unsigned)min_u64(columns, WIDTH_MAX);
}
