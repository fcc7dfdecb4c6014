// SPDX-License-Identifier: MIT
// command: a subcommand, and the table of all subcommands.
//
// Each command is one const struct in its own file, cmd_<name>.c. The table in main.c lists them in
// the order of the help. This file also has the messages that all commands share. Context: H.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "cli/options/options.h"

enum exit_status {
    STATUS_OK = 0,
    STATUS_FOUND = 1, // a check found something
    STATUS_USAGE = 2, // invalid command line, or a file that cannot be read
};

struct command {
    const char *name;
    const char *summary;     // one line, for the list of commands
    const char *synopsis;    // after "cairn NAME "
    const char *description; // paragraphs, for `cairn help NAME`
    struct option_table options;
    const char *const *words;          // operands that are one of these, for completion; NULL: none
    int words_after;                   // the number of operands before that one
    bool ignores_user_options;         // of user_options.h
    int (*run)(int argc, char **argv); // argv[0] is the command's name; returns the exit status
};

extern const struct command command_record;
extern const struct command command_report;
extern const struct command command_analyze;
extern const struct command command_check;
extern const struct command command_diff;
extern const struct command command_dump;
extern const struct command command_export;
extern const struct command command_verify;
extern const struct command command_symbolize;
extern const struct command command_top;
extern const struct command command_cache;
extern const struct command command_ctl;
extern const struct command command_store;
extern const struct command command_help;
extern const struct command command_version;

// All commands; NULL ends the table.
extern const struct command *const commands[];

// Return the command of that name, or NULL.
const struct command *command_find(const char *name);

// Return the command whose name is most similar to `name`, or NULL if none is similar.
const struct command *command_suggest(const char *name);

// Parse argv[1..argc) by the command's table into `fields`. Return false if the command is done
// after help or an error. Both have been printed then, and *status is the exit status.
bool command_parse(const struct command *command,
                   int argc,
                   char **argv,
                   void *fields,
                   int *first_operand,
                   int *status);

// Print `info` as "cairn: ..." with a hint at the command's help. Return STATUS_USAGE.
int command_usage_error(const struct command *command, const struct err_info *info);

// Print `info` as "cairn: ...". Return STATUS_USAGE.
int command_error(const struct err_info *info);

// Prints the help of a command; returns STATUS_OK.
int command_print_help(const struct command *command);

// Flushes stdout. Returns `status`, or STATUS_USAGE with a sentence if something could not be
// written; a reader that went away (`| head`) is not worth a sentence.
int command_finish_output(int status);

// Whether colours may be used on stdout or stderr: a terminal, no NO_COLOR, no TERM=dumb.
bool command_use_color(int fd);

enum {
    COMMAND_WIDTH_MIN = 60
};

// The width of the terminal at `fd`, within reason. If it is none: COLUMNS of the environment, or
// 80.
unsigned command_width(int fd);
