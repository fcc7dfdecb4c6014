// SPDX-License-Identifier: MIT
// record_options: the options for how a program is recorded, for every command that records one.
//
// `cairn record` and `cairn check -- PROGRAM` list them as shared options. Options for where a
// recording goes, and for running processes, are those of `cairn record` alone. Context: H.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "cli/options/options.h"
#include "cli/record/record_run.h"
#include "host/containers/vec.h"
#include "inject/allocators/allocator_names.h"

// A command has one of these in its fields, with RECORD_WORDS_DEFAULTS.
struct record_words {
    struct record_settings settings;
    const char *overflow;
    const char *allocator;
    bool ignores_settings; // those of cairn.toml
};

#define RECORD_WORDS_DEFAULTS                            \
    {                                                    \
        .settings = RECORD_DEFAULTS, .overflow = "wait", \
    }

enum {
    RECORD_OPTION_COUNT = 13
};
extern const struct option_spec record_option_specs[RECORD_OPTION_COUNT];

// The shared options of a table, for `field` of `struct fields`.
#define RECORD_OPTIONS(fields, field)                                            \
    (struct option_group)                                                        \
    {                                                                            \
        record_option_specs, RECORD_OPTION_COUNT, offsetof(struct fields, field) \
    }

// Refuse invalid and contradictory words; else set *out, which borrows `names`, a zeroed list that
// the caller releases. ERR_INVALID with a sentence, ERR_NO_MEMORY.
enum err record_words_take(const struct record_words *words,
                           struct allocator_name_vec *names,
                           struct record_settings *out,
                           struct err_info *info) MUST_USE;

// The processes that --pid and --name of `cairn record` mean.

// Each needs three descriptors, of usually 1024.
#define ATTACH_TARGETS_MAX 256

struct attach_targets {
    struct u32_vec pids; // ascending, each once
    bool is_by_name;     // some were found by name
};

void attach_targets_release(struct attach_targets *targets);

// Find the processes of all uses of the two options. ERR_INVALID for a word that is not a list of
// process numbers, ERR_NOT_FOUND if no process has a name, ERR_LIMIT if they are too many to be
// recorded at one time.
enum err attach_targets_find(const struct option_word_vec *words,
                             struct attach_targets *out,
                             struct err_info *info) MUST_USE;
