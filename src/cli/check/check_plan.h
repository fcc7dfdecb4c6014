// SPDX-License-Identifier: MIT
// check_plan: the budgets that `cairn check` holds a program to, from the command line and a file.
//
//   [check]                       --max-peak 64MiB --max-leaked 0
//   max-peak = "64MiB"
//   max-leaked = 0
//   baseline = "base.cairn"       --baseline base.cairn --max-growth 5%
//   max-growth = "5%"
//   allow-missing = false         --allow-missing
//   [[function]]                  --function '^parse' --max-allocations 1000
//   match = "^parse"
//   max-allocations = 1000
//
// A value on the command line replaces the value in the file. The file is a small subset of TOML
// (host/text/toml.h). Context: H. Failure: a sentence with the line of the file or the name of the
// option.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "cli/options/options.h"
#include "host/text/toml.h"
#include "profile/compare/budget.h"

struct check_budget {
    const char *function; // regular expression, borrowed; NULL: the whole program
    enum budget_measure measure;
    uint64_t limit; // in the measure's unit
};

DEFINE_VEC(check_budget_vec, struct check_budget);

struct check_plan {
    struct toml file;                // owned; budgets may borrow its texts
    struct check_budget_vec budgets; // owned
    const char *baseline;            // borrowed; NULL: none
    const char *per;                 // borrowed; the value of --per
    uint64_t growth;                 // in hundredths of a percent
    bool has_growth;
    bool allows_missing; // accept unknown functions and filters without a match
};

// Read the file at `path`. With NULL, read cairn.toml if it exists.
enum err check_plan_read(struct check_plan *plan, const char *path, struct err_info *info) MUST_USE;

// Add the options --function and --max-... in the order of the command line.
enum err check_plan_add_words(struct check_plan *plan,
                              const struct option_word_vec *words,
                              struct err_info *info) MUST_USE;

void check_plan_release(struct check_plan *plan);
