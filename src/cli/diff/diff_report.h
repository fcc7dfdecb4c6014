// SPDX-License-Identifier: MIT
// diff_report: prints `cairn diff` and `cairn report --diff`, as text, JSON or CSV.
//
// src/profile compares and judges; this module only writes. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "cli/diff/comparison.h"
#include "cli/options/output_words.h"
#include "profile/compare/diff_verdict.h"
#include "profile/findings/finding_changes.h"

struct diff_options {
    enum cost sort;       // COST_COUNT: the default costs
    uint32_t site_limit;  // functions per cost, 0: all
    uint32_t stack_limit; // stacks per function, 0: all
    uint32_t depth_limit; // printed frames per stack, text only; 0: all
    uint64_t threshold;   // in hundredths of a percent
    struct between between;
    struct per per;
    bool shows_wrappers; // print each wrapper frame of a stack, text only
    bool use_full_names;
    bool use_color;
    unsigned width_columns; // text only
};

struct diff_report {
    const struct comparison *comparison; // borrowed
    const struct diff_options *options;  // borrowed
    const enum cost *costs;              // the judged costs, in order
    size_t cost_count;
    struct diff_finding_vec findings; // owned
    struct finding_changes changes;   // owned
};

enum err diff_report_build(const struct comparison *comparison,
                           const struct diff_options *options,
                           struct diff_report *out,
                           struct err_info *info) MUST_USE;
void diff_report_release(struct diff_report *report);

// Return the options for stdout that a command line asks for, with the usual threshold.
struct diff_options diff_options_of(const struct output_words *output, enum cost sort);

// Write to stdout in the form of `output`. ERR_NO_MEMORY; the stream keeps an output error.
enum err diff_report_print(const struct diff_report *report, const struct output_words *output)
    MUST_USE;

// Return ERR_NO_MEMORY on failure. The caller checks the stream for output errors.
enum err diff_report_write_text(const struct diff_report *report, FILE *out) MUST_USE;

// Print the functions whose `cost` changed most, under a title.
enum err diff_print_section(const struct diff_report *report, FILE *out, enum cost cost) MUST_USE;
