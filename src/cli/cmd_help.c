// SPDX-License-Identifier: MIT
// cmd_help: `cairn help`, `cairn help COMMAND`, and the output of `cairn` alone.
#include "cli/cmd_help.h"

#include "cli/command_table.h"

struct help_fields {
    command_list commands;
};

void help_print_overview(command_list commands, FILE *out)
{
    // Output errors are found when the stream is closed.
    (void)fputs("cairn records where a program's memory goes, and shows it.\n"
                "\n"
                "  cairn PROGRAM ARGS...        record PROGRAM and its child processes\n"
                "  cairn report FILE            print where the memory went\n"
                "  cairn help COMMAND           describe a command and its options\n"
                "\n"
                "Commands:\n",
                out);
    for (command_list command = commands; *command != NULL; command++) {
        (void)fprintf(out, "  %-10s %s\n", (*command)->name, (*command)->summary);
    }
    (void)fputs("\n"
                "'cairn PROGRAM' is short for 'cairn record -- PROGRAM' and takes the same\n"
                "options. To record a program that has the name of a command, write\n"
                "'cairn -- report' or 'cairn ./report'.\n"
                "\n"
                "Options that you always want can be in ~/.config/cairn/config.toml or in\n"
                "CAIRN_OPTIONS; 'cairn version --verbose' prints what is read.\n",
                out);
}

static int run(void *context, int count, char **operands)
{
    const struct help_fields *fields = context;
    if (count == 0) {
        help_print_overview(fields->commands, stdout);
        return command_finish_output(STATUS_OK);
    }
    const struct command *command = command_find(fields->commands, operands[0]);
    if (command != NULL) {
        return command_print_help(command);
    }
    struct err_info info;
    const struct command *near = command_suggest(fields->commands, operands[0]);
    (void)err_set(&info, ERR_NOT_FOUND, "unknown command '%.100s'%s%s%s", operands[0],
                  near != NULL ? "; did you mean '" : "", near != NULL ? near->name : "",
                  near != NULL ? "'?" : "; 'cairn help' lists them");
    return command_error(&info);
}

const struct command command_help = {
    .name = "help",
    .summary = "describe a command and its options",
    .synopsis = "[COMMAND]",
    .description = "Describe COMMAND, or list the commands.\n",
    .ignores_user_options = true,
    .reads_commands = true,
    .fields_bytes = sizeof(struct help_fields),
    .run = run,
};
