// SPDX-License-Identifier: MIT
#include "cli/command_table.h"

#include <string.h>

#include "base/minmax.h"

enum {
    NAME_MAX_LEN = 15, // a longer word is not a mistyped command
    DISTANCE_MAX = 2,  // maximal edits between a word and the suggested command
};

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

// Return the optimal string alignment distance: insertions, deletions, changes and swapped
// neighbours.
static unsigned edit_distance(const char *left, const char *right)
{
    unsigned table[NAME_MAX_LEN + 2][NAME_MAX_LEN + 2];
    size_t rows = strlen(left);
    size_t columns = strlen(right);
    for (size_t i = 0; i <= rows; i++) {
        for (size_t j = 0; j <= columns; j++) {
            if (i == 0 || j == 0) {
                table[i][j] = (unsigned)(i + j);
                continue;
            }
            unsigned change = table[i - 1][j - 1] + (left[i - 1] != right[j - 1]);
            unsigned shift = (unsigned)min_u64(table[i - 1][j], table[i][j - 1]) + 1;
            table[i][j] = (unsigned)min_u64(change, shift);
            if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1]) {
                table[i][j] = (unsigned)min_u64(table[i][j], table[i - 2][j - 2] + 1);
            }
        }
    }
    return table[rows][columns];
}

const struct command *command_suggest(const char *name)
{
    const struct command *best = NULL;
    unsigned best_distance = DISTANCE_MAX + 1;
    if (strlen(name) > NAME_MAX_LEN || strlen(name) <= DISTANCE_MAX) {
        return NULL;
    }
    for (const struct command *const *command = commands; *command != NULL; command++) {
        unsigned distance = edit_distance(name, (*command)->name);
        if (distance < best_distance) {
            best = *command;
            best_distance = distance;
        }
    }
    return best;
}
