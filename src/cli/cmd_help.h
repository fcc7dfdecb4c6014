// SPDX-License-Identifier: MIT
// cmd_help: the overview that `cairn`, `cairn --help` and `cairn help` print.
#pragma once

#include <stdio.h>

#include "cli/options/command.h"

void help_print_overview(command_list commands, FILE *out);
