// SPDX-License-Identifier: MIT
// cmd_version: `cairn version`, `cairn --version`.
#include <stdio.h>

#include "cli/options/command.h"

static int run(int argc, char **argv)
{
    int operand;
    int status;
    if (!command_parse(&command_version, argc, argv, NULL, &operand, &status)) {
        return status;
    }
    (void)printf("cairn %s\n", CAIRN_VERSION); // command_finish_output checks for errors
    return command_finish_output(STATUS_OK);
}

const struct command command_version = {
    .name = "version",
    .summary = "print the version of cairn",
    .synopsis = "",
    .description = "Print the version of cairn.\n",
    .run = run,
};
