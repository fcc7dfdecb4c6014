// SPDX-License-Identifier: MIT
// main: finds the command of a command line and runs it.
//
//   cairn COMMAND ...             a name from the table below
//   cairn --help | --version      the overview, the version
//   cairn --complete WORDS ...    what can follow, for the shells (completion.h)
//   cairn [options] PROGRAM ...   anything else is `cairn record`
//
// Context: H. Exit status: the command's; 2 for an invalid command line.
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/commands/cmd_help.h"
#include "cli/options/command.h"
#include "cli/options/completion.h"
#include "cli/options/user_options.h"
#include "host/os/quiet_thread.h"

const struct command *const commands[] = {
    &command_record, &command_report,    &command_diff,    &command_check,
    &command_top,    &command_analyze,   &command_export,  &command_dump,
    &command_verify, &command_symbolize, &command_cache,   &command_store,
    &command_ctl,    &command_help,      &command_version, NULL,
};

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
    quiet_thread_make_room();
    if (argc < 2) {
        help_print_overview(stdout);
        (void)command_finish_output(STATUS_USAGE); // the status does not depend on it
        return STATUS_USAGE;
    }
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++) {
        if (strcmp(argv[1], aliases[i].word) == 0) {
            return user_options_run(aliases[i].command, argc - 1, argv + 1);
        }
    }
    if (strcmp(argv[1], "--complete") == 0) {
        completion_write(argc - 2, argv + 2, stdout);
        return command_finish_output(STATUS_OK);
    }
    const struct command *command = command_find(argv[1]);
    if (command != NULL) {
        return user_options_run(command, argc - 1, argv + 1);
    }
    return user_options_run(&command_record, argc, argv);
}
