// SPDX-License-Identifier: MIT
// command_table: all commands. The commands that look at the others are beside it. Context: H.
#pragma once

#include "cli/commands/commands.h"
#include "cli/options/command.h"

extern const struct command command_record;
extern const struct command command_help;
extern const struct command command_version;

// All commands, in the order of the help; NULL ends the table.
extern const struct command *const command_table[];
