// SPDX-License-Identifier: MIT
// cmd_version: `cairn version`, `cairn --version`.
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "cli/command_table.h"
#include "cli/doctor/build_details.h"
#include "cli/user_options.h"

struct version_fields {
    command_list commands;
    bool is_verbose;
};

// clang-format off
static const struct option_spec specs[] = {
    OPTION(0, "verbose", FLAG, NULL, offsetof(struct version_fields, is_verbose),
           "also print compiler, libraries, kernel, what cairn may attach to here, and which "
           "options of the user are read"),
};
// clang-format on

// Check them too: each error is that of every other command.
static int print_user_options(command_list commands)
{
    struct err_info info = {0};
    CLEANUP(user_options_release) struct user_options options = {0};
    if (user_options_read(commands, &command_version, &options, &info) != ERR_OK) {
        return command_error(&info);
    }
    const char *path = options.path.len > 0 ? strbuf_text(&options.path) : "none, without HOME";
    const char *variable = getenv("CAIRN_OPTIONS");
    (void)printf("config.toml: %s%s\n", path,
                 options.is_read || options.path.len == 0 ? "" : " (does not exist)");
    (void)printf("CAIRN_OPTIONS: %s\n", variable != NULL ? variable : "");
    return STATUS_OK;
}

static int run(void *context, int count, char **operands)
{
    const struct version_fields *fields = context;
    (void)count; // operands are ignored
    (void)operands;
    (void)printf("cairn %s\n", CAIRN_VERSION); // command_finish_output checks for errors
    if (fields->is_verbose) {
        build_details_print();
    }
    return command_finish_output(fields->is_verbose ? print_user_options(fields->commands)
                                                    : STATUS_OK);
}

const struct command command_version = {
    .name = "version",
    .summary = "print the version of cairn",
    .synopsis = "[--verbose]",
    .description = "Print the version of cairn.\n",
    .options = {.specs = specs, .count = ARRAY_LEN(specs)},
    .ignores_user_options = true,
    .reads_commands = true,
    .fields_bytes = sizeof(struct version_fields),
    .run = run,
};
