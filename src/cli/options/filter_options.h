// SPDX-License-Identifier: MIT
// filter_options: the options that say which part of a recording is counted, for every command that
// counts: report, export, diff, check.
//
// The words of the command line become a struct filter for each recording that is opened, since
// a time range is one of that recording's slices. What passes is described here in words.
// Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "cli/options/options.h"
#include "host/text/strbuf.h"
#include "profile/select/filter.h"

// A command has one of these in its fields, zeroed, and filter_option_specs as shared options.
struct filter_words {
    const char *function;
    const char *file;
    const char *module;
    const char *thread;
    const char *classes;
    struct value_range time;
    struct value_range sizes;
    struct value_range lifetimes;
    uint32_t pid;
    const char *suppressions; // path of a file of rules
    bool no_built_in;
    bool no_embedded;
    bool suppresses; // rules that were not asked for apply, too: set by commands that judge leaks
};

// A filter for one recording, and the rules that it points to: it must not be moved.
struct applied_filter {
    struct filter filter;
    struct suppressions rules; // owned
};

void applied_filter_release(struct applied_filter *applied);

enum {
    FILTER_OPTION_COUNT = 12
};
extern const struct option_spec filter_option_specs[FILTER_OPTION_COUNT];

// `field` of `struct fields` as the shared options of a table.
#define FILTER_OPTIONS(fields, field)                                            \
    (struct option_group)                                                        \
    {                                                                            \
        filter_option_specs, FILTER_OPTION_COUNT, offsetof(struct fields, field) \
    }

// What can be said without a recording: ERR_INVALID with a sentence.
enum err filter_words_check(const struct filter_words *words, struct err_info *info) MUST_USE;

// Whether any of them restricts what is counted.
bool filter_words_cut(const struct filter_words *words);

// The filter for one recording. Texts stay borrowed. ERR_UNSUPPORTED with a sentence for what was
// not recorded; what reading the file of suppressions says. applied_filter_release() in either
// case.
enum err filter_words_apply(const struct filter_words *words,
                            const struct recording *recording,
                            struct applied_filter *out,
                            struct err_info *info) MUST_USE;

// Lines on what passes, each indented by four; nothing if everything does.
void filter_print(const struct selection *selection,
                  const struct filter *filter,
                  size_t columns,
                  FILE *out);

// Sentences, each ended by a newline, on what of the filter finds nothing: a name that no part of
// the recording has, all of them together, and rules of the user's file that no leak matches. With
// two recordings (`old` may be NULL) only what neither has. Appends nothing if all is well.
void filter_explain_nothing(const struct selection *new,
                            const struct selection *old,
                            const struct filter *filter,
                            struct strbuf *out);

// The same on standard error.
void filter_warn(const struct selection *new,
                 const struct selection *old,
                 const struct filter *filter);

// The rules that suppressed something, a line each, under a title; nothing if none did.
void filter_print_suppressions(const struct selection *selection,
                               const struct filter *filter,
                               size_t columns,
                               FILE *out);
