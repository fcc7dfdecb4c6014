// SPDX-License-Identifier: MIT
// attach_options: the processes that --pid and --name of `cairn record` mean.
//
// Context: H; prints nothing.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "cli/options/options.h"
#include "host/containers/vec.h"

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
