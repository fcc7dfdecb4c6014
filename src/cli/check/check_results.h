// SPDX-License-Identifier: MIT
// check_results: the results of a check, and the forms in which they are printed. Each budget, the
// growth of each cost and the program itself have one result.
//
//   text       for people, with the responsible stacks
//   JUnit      XML, for build servers: one test case for each result; a broken budget is a
//              <failure>, a failed program an <error>; what is undecided is <skipped>
//   GitHub     workflow commands, which become annotations beside the code
//   JSON       views_json; docs/format/json.md
//   SARIF      broken and undecided budgets, and the findings; for code scanning
//
// Context: H. Names from the recording go through screen_text and the escapes of each form.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "cli/check/check_plan.h"
#include "cli/options/filter_options.h"
#include "host/text/json_writer.h"
#include "host/text/strbuf.h"
#include "profile/model/profile.h"

enum check_kind {
    CHECK_PROGRAM,
    CHECK_BUDGET,
    CHECK_GROWTH,
};

struct check_result {
    enum check_kind kind;
    bool is_broken;
    bool is_unknown;       // growth of a cost that one recording lacks: neither kept nor broken
    bool is_uncertain;     // within the error of its figure, or by too short times: counts as kept
    struct strbuf name;    // "max-peak", "max-allocations of ^parse", "growth of peak", "program"
    struct strbuf message; // "57.2 MiB of 64.0 MiB"
    struct strbuf details; // lines on the responsible stacks, for a broken budget
    struct strbuf file;    // of the first responsible stack, "" if unknown
    uint32_t line;
    const char *function; // of the budget; borrowed
    const char *measure;  // "max-peak", or the cost that grew; NULL for the program
    double value;
    double limit;
    double at_least; // bounds of a budget's figure
    double at_most;
};

DEFINE_VEC(check_result_vec, struct check_result);

struct check_results {
    struct check_result_vec items; // owned
    struct strbuf title;           // the program or the file that was checked
    uint64_t runtime_ms;
    bool has_run; // the check ran the program
    int wait_status;
};

void check_results_release(struct check_results *results);

// Add how the program ended, if the check ran it. A failure is a broken result unless it is
// allowed.
enum err check_add_program(struct check_results *results, int wait_status, bool is_allowed)
    MUST_USE;

// Hold a recording to the whole plan. `profile` must outlive the results.
enum err check_evaluate(struct check_results *results,
                        const struct check_plan *plan,
                        struct profile *profile,
                        const struct name_sources *sources,
                        const struct filter_words *words,
                        struct err_info *info) MUST_USE;

size_t check_broken_count(const struct check_results *results);

void check_write_text(const struct check_results *results, bool use_color, FILE *out);
void check_write_junit(const struct check_results *results, FILE *out);
enum err check_write_github(const struct check_results *results, FILE *out) MUST_USE;
enum err check_write_json(const struct check_results *results, enum json_style style, FILE *out)
    MUST_USE;

// Write a file with the results, and what `cairn export --to sarif` says of the recording `input`.
enum err check_write_sarif(const struct check_results *results,
                           const struct profile *profile,
                           const struct filter_words *words,
                           const char *input,
                           const char *path,
                           struct err_info *info) MUST_USE;
