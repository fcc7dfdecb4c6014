// SPDX-License-Identifier: MIT
#include "cli/command_table.h"

#include <string.h>

#include "cli/options/spelling.h"

const struct command *const commands[] = {
    &command_record,
    &command_report,
    &command_diff,
    &command_check,
    &command_top,
    &command_analyze,
    &command_export,
    &command_dump,
    &command_verify,
    &command_symbolize,
    &command_cache,
    &command_store,
    &command_ctl,
    &command_trim,
    &command_doctor,
    &command_self_test,
    &command_help,
    &command_version,
    NULL,
};

const struct command *command_find(const char *name)
{
    for (const struct command *const *command = commands; *command != NULL; command++) {
        if (strcmp((*command)->name, name) == 0) {
            return *command;
        }
    }
    return NULL;
}

const struct command *command_suggest(const char *name)
{
    const struct command *best = NULL;
    unsigned best_distance = SPELLING_DISTANCE_MAX + 1;
    for (const struct command *const *command = commands; *command != NULL; command++) {
        const unsigned distance = spelling_distance(name, (*command)->name);
        if (distance < best_distance) {
            best = *command;
            best_distance = distance;
        }
    }
    return best;
}
