// SPDX-License-Identifier: MIT
// check_plan: what `cairn check` is to hold a program to, from the command line and a file.
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
// What is set in both is as the command line says. The file is a small subset of TOML
// (host/text/toml.h). Context: H. Failure: a sentence with the file's line or the option's name.
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
    struct toml file;                // owned; texts of the budgets may lie in it
    struct check_budget_vec budgets; // owned
    const char *baseline;            // borrowed; NULL: none
    const char *per;                 // borrowed; as --per of cairn diff
    uint64_t growth;                 // in hundredths of a percent
    bool has_growth;
    bool allows_missing; // a function that nobody knows, and a filter that finds nothing, are no
                         // error
};

// Reads the file at `path`; NULL: cairn.toml if there is one.
enum err check_plan_read(struct check_plan *plan, const char *path, struct err_info *info) MUST_USE;

// Takes the options --function and --max-..., in the order in which they stand.
enum err check_plan_add_words(struct check_plan *plan,
                              const struct option_word_vec *words,
                              struct err_info *info) MUST_USE;

void check_plan_release(struct check_plan *plan);
