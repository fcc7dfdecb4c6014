// SPDX-License-Identifier: MIT
// filter_options: the options that select the counted part of a recording, for report, export, diff
// and check.
//
// The words of the command line become a struct filter for each opened recording, because a time
// range means slices of that recording. This module also describes a filter in words. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "cli/options/options.h"
#include "host/text/strbuf.h"
#include "profile/select/filter.h"

// A command has one of these in its fields, zeroed, and lists filter_option_specs as shared
// options.
struct filter_words {
    struct filter names; // only its patterns and its pid
    const char *classes;
    struct value_range time;
    struct value_range sizes;
    struct value_range lifetimes;
    struct suppression_choice rules;
    bool suppresses; // not only the rules of the user's file: set by commands that judge leaks
};

// A filter for one recording, and the rules that it points to. It must not move.
struct applied_filter {
    struct filter filter;
    struct suppressions rules; // owned
};

void applied_filter_release(struct applied_filter *applied);

enum {
    FILTER_OPTION_COUNT = 16
};

// The options of a struct suppression_choice, which `cairn analyze` has, too.
#define SUPPRESSION_OPTION_SPECS(fields, choice)                                           \
    OPTION(0, "suppressions", NAME, "FILE", offsetof(struct fields, choice.path),          \
           "ignore leaks that match a rule of FILE (leak:PATTERN, as for LeakSanitizer)"), \
        OPTION(0, "no-builtin-suppressions", FLAG, NULL,                                   \
               offsetof(struct fields, choice.no_built_in),                                \
               "also count what libc and other runtimes never free"),                      \
        OPTION(0, "no-embedded-suppressions", FLAG, NULL,                                  \
               offsetof(struct fields, choice.no_embedded),                                \
               "do not use the rules that the recording contains (heaptrack's may)")

// Of --filter, which `cairn top` has, too.
#define FILTER_TEXT_HELP "only call sites whose function, file or module contains TEXT"

extern const struct option_spec filter_option_specs[FILTER_OPTION_COUNT];

// The shared options of a table, for `field` of `struct fields`.
#define FILTER_OPTIONS(fields, field)                                            \
    (struct option_group)                                                        \
    {                                                                            \
        filter_option_specs, FILTER_OPTION_COUNT, offsetof(struct fields, field) \
    }

// Check what needs no recording. Return ERR_INVALID with a sentence.
enum err filter_words_check(const struct filter_words *words, struct err_info *info) MUST_USE;

// Return whether a word restricts what is counted.
bool filter_words_cut(const struct filter_words *words);

// Make the filter for one recording. It borrows the texts. Return ERR_UNSUPPORTED with a sentence
// for what was not recorded, or the error of the file of suppressions. Call
// applied_filter_release() in each case.
enum err filter_words_apply(const struct filter_words *words,
                            const struct recording *recording,
                            struct applied_filter *out,
                            struct err_info *info) MUST_USE;

// Print what passes the filter, in lines with an indent of four. Print nothing without a filter.
void filter_print(const struct selection *selection,
                  const struct filter *filter,
                  size_t columns,
                  FILE *out);

// Append a sentence with a newline for each part of the filter that matches nothing: a name that
// the recording does not have, all names together, and rules of the user's file without a matching
// leak. With two recordings (`old` may be NULL), append only what matches nothing in both.
void filter_explain_nothing(const struct selection *new,
                            const struct selection *old,
                            const struct filter *filter,
                            struct strbuf *out);

// Whether there is a filter and nothing passes it, on either side (`old` may be NULL).
bool filter_matches_nothing(const struct selection *new, const struct selection *old);

// Print the sentences of filter_explain_nothing() on stderr.
void filter_warn(const struct selection *new,
                 const struct selection *old,
                 const struct filter *filter);

// Print the rules that suppressed leaks, a line each, under a title. Print nothing without such
// rules.
void filter_print_suppressions(const struct selection *selection,
                               const struct filter *filter,
                               size_t columns,
                               FILE *out);
