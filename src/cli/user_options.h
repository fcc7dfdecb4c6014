// SPDX-License-Identifier: MIT
// user_options: options that a user always wants, before those of the command line.
//
//   $XDG_CONFIG_HOME/cairn/config.toml, or ~/.config/cairn/config.toml    (TOML, toml.h)
//       no-color = true          for each command with this option
//       [report]
//       limit = 20               for `cairn report`
//   CAIRN_OPTIONS="--no-color --limit=20"                                 --NAME or --NAME=VALUE
//
// They become words in this order: the file's entries for all commands, those for this one, the
// variable's, the command line. Later ones win. An option that only other commands have is skipped;
// one that no command has is an error, so that a mistyped name is noticed. `--no-config` leaves
// both out. Context: H. Failure: a sentence that names the file or the variable.
#pragma once

#include <stdbool.h>

#include "cli/options/command.h"
#include "host/text/strbuf.h"

// Zeroed before use; owned.
struct user_options {
    command_list commands; // borrowed; all of them
    struct strbuf path;    // of the file; empty without XDG_CONFIG_HOME and HOME
    bool is_read;          // the file exists
    struct strbuf words;   // each ended by a zero byte
    size_t word_count;
};

// Read what applies to a command.
enum err user_options_read(command_list commands,
                           const struct command *command,
                           struct user_options *out,
                           struct err_info *info) MUST_USE;
void user_options_release(struct user_options *options);

// Run a command with these options before those of argv. Return its exit status.
int user_options_run(command_list commands, const struct command *command, int argc, char **argv);
