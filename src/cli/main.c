// SPDX-License-Identifier: MIT
// main: finds the command of a command line and runs it.
//
//   cairn COMMAND ...             a name from command_table.h
//   cairn --help | --version      the overview, the version
//   cairn --complete WORDS ...    what can follow, for the shells (completion.h)
//   cairn [options] PROGRAM ...   anything else is `cairn record`
//
// Context: H. Exit status: the command's; 2 for an invalid command line.
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/cmd_help.h"
#include "cli/command_table.h"
#include "cli/completion.h"
#include "cli/standard_streams.h"
#include "cli/user_options.h"
#include "host/threads/quiet_thread.h"

// Words that mean a command without being its name.
static const struct {
    const char *word;
    const struct command *command;
} aliases[] = {
    {"--help", &command_help}, {"-h", &command_help},    {"--version", &command_version},
    {"-v", &command_version},  {"-V", &command_version}, {"--analyze", &command_analyze},
    {"-a", &command_analyze},
};

int main(int argc, char **argv)
{
    standard_streams_occupy();
    standard_streams_outlive_limit();
    quiet_thread_make_room();
    if (argc < 2) {
        help_print_overview(command_table, stdout);
        (void)command_finish_output(STATUS_USAGE); // the status does not depend on it
        return STATUS_USAGE;
    }
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++) {
        if (strcmp(argv[1], aliases[i].word) == 0) {
            return user_options_run(command_table, aliases[i].command, argc - 1, argv + 1);
        }
    }
    if (strcmp(argv[1], "--complete") == 0) {
        completion_write(argc - 2, argv + 2, stdout);
        return command_finish_output(STATUS_OK);
    }
    const struct command *command = command_find(command_table, argv[1]);
    if (command != NULL) {
        return user_options_run(command_table, command, argc - 1, argv + 1);
    }
    return user_options_run(command_table, &command_record, argc, argv);
}
