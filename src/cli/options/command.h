// SPDX-License-Identifier: MIT
// command: a subcommand, and the messages that all of them share.
//
// Each command is one const struct in its own file, cmd_<name>.c; command_table.h lists them.
// Context: H.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/err.h"
#include "cli/options/options.h"
#include "host/text/json_writer.h"

enum exit_status {
    STATUS_OK = 0,
    STATUS_FOUND = 1, // a check found something, or a report nothing that matches its filter
    STATUS_USAGE = 2, // invalid command line, or a file that cannot be read
};

struct command {
    const char *name;
    const char *summary;     // one line, for the list of commands
    const char *synopsis;    // after "cairn NAME "
    const char *description; // paragraphs, for `cairn help NAME`
    const char *examples;    // command lines, for the same; NULL: none
    struct option_table options;
    const char *const *words;  // operands that are one of these, for completion; NULL: none
    int words_after;           // the number of operands before that one
    bool takes_one_file;       // refuse any other number of operands
    bool ignores_user_options; // of user_options.h
    bool reads_commands;       // the fields begin with the table of all commands
    size_t fields_bytes;       // of the struct that takes the options
    const void *defaults;      // of that struct; NULL: zeroes
    // Run with the parsed fields and the operands, and return the exit status. Before the operands
    // is the last word of the options, or the command's name.
    int (*run)(void *fields, int count, char **operands);
};

// All commands, in the order of the help; NULL ends the table. The commands that read it are in it,
// so it is handed to them.
typedef const struct command *const *command_list;

// Return the command of that name, or NULL.
const struct command *command_find(command_list commands, const char *name);

// Return the command whose name is most similar to `name`, or NULL if none is similar.
const struct command *command_suggest(command_list commands, const char *name);

// Parse argv[1..argc) by the command's table, and run the command. Print help and errors. Return
// the exit status. argv[0] is the command's name.
int command_run(command_list commands, const struct command *command, int argc, char **argv);

// Return whether "--" is before the operands, which are a program and its arguments then.
static inline bool command_is_program(char *const *operands)
{
    return strcmp(operands[-1], "--") == 0;
}

// Print `info` as "cairn: ..." with a hint at the command's help. Return STATUS_USAGE.
int command_usage_error(const struct command *command, const struct err_info *info);

// Print a sentence like command_usage_error().
int command_refuse(const struct command *command, const char *format, ...) PRINTF_LIKE(2, 3);

// Print `info` as "cairn: ...". Return STATUS_USAGE.
int command_error(const struct err_info *info);

// Print the help of a command. Return STATUS_OK.
int command_print_help(const struct command *command);

// Flush stdout. Return `status`, or STATUS_USAGE if something could not be written. Print a
// sentence then, unless the reader has closed the pipe (`| head`).
int command_finish_output(int status);

// End a command whose work has ended with `problem`: print it, or flush stdout. Return the exit
// status, which is `status` without a problem.
int command_end(enum err problem, const struct err_info *info, int status);

// Return the style of JSON on stdout: for people on a terminal, else for programs.
enum json_style command_json_style(void);

// Return whether to use colours on stdout or stderr: on a terminal that TERM names and that is not
// dumb, without NO_COLOR.
bool command_use_color(int fd);

enum {
    COMMAND_WIDTH_MIN = 60
};

// Return the width of the terminal at `fd`, at least COMMAND_WIDTH_MIN. Without a terminal it is
// COLUMNS of the environment, or 80.
unsigned command_width(int fd);
