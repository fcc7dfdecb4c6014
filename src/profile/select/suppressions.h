// SPDX-License-Identifier: MIT
// suppressions: rules for leaks to ignore, in the syntax of LeakSanitizer.
//
//   # comment
//   leak:load_plugins            a function, source file or module on the stack contains this
//   leak:^lib*crypto$            ^ and $ anchor the ends, * matches anything
//
// A function is matched with and without its return type, parameters and template arguments.
// The innermost frame that any rule matches decides, inlined frames included; of several rules the
// first wins. Some built-in rules name the modules of the allocating code instead (code_rule in
// suppressions.c); they come last.
// Suppressed memory is not leaked: profile_select removes it from the leaked costs and counts it
// for the rule.
// Rules have three sources: a built-in list for what the C library and related libraries keep on
// purpose, an imported recording (rec_meta.suppressions), and a file.
// Trust: input is hostile; work is proportional to rules times distinct names. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "host/text/strbuf.h"
#include "profile/model/profile.h"

enum {
    SUPPRESSION_FILE_MAX_BYTES = 1 << 20,
    SUPPRESSION_RULES_MAX = 10000,
};

enum suppression_source {
    SUPPRESSION_BUILT_IN,
    SUPPRESSION_EMBEDDED,
    SUPPRESSION_FILE,
};

// "built-in", "embedded" or "file". Static.
const char *suppression_source_name(enum suppression_source source);

struct code_rule;

struct suppression {
    size_t pattern; // in texts
    enum suppression_source source;
    char first; // of each name that the pattern matches; 0: any
    // Static. NULL: `pattern` is the rule. Else this is the rule, and `pattern` only describes it.
    const struct code_rule *code;
};

DEFINE_VEC(suppression_vec, struct suppression);

// Which rules apply. Zeros: the usual ones.
struct suppression_choice {
    const char *path; // of the user's file of rules; NULL: none
    bool no_built_in;
    bool no_embedded;
};

struct suppressions {
    struct suppression_vec rules; // owned; zero-terminated patterns
    struct strbuf texts;          // owned; each ended by a zero byte
};

// The matches of one rule in a selection.
struct suppression_match {
    uint64_t stack_count; // rows with leaks
    uint64_t live_bytes;
    uint64_t live_blocks;
};

DEFINE_VEC(suppression_match_vec, struct suppression_match);

// Append the rules of a text. With `name`, a file name, a line that is not a leak rule is
// ERR_INVALID, "file:3: ...". With a NULL name such lines are skipped. ERR_LIMIT: too many rules.
enum err suppressions_add(struct suppressions *list,
                          struct bytes text,
                          enum suppression_source source,
                          const char *name,
                          struct err_info *info) MUST_USE;

enum err suppressions_add_built_in(struct suppressions *list) MUST_USE;

// Append the chosen rules for a recording, from the most specific source to the least: the first
// that matches counts. Errors: those of the file.
enum err suppressions_add_chosen(struct suppressions *list,
                                 const struct suppression_choice *choice,
                                 const struct recording *recording,
                                 struct err_info *info) MUST_USE;

void suppressions_release(struct suppressions *list);

static inline const char *suppression_pattern(const struct suppressions *list, size_t rule)
{
    return strbuf_text(&list->texts) + list->rules.items[rule].pattern;
}

// By node of the recording: the number of the rule that suppresses its stack, + 1; 0 if none does.
// `out` stays empty if no rule matches anything. ERR_NO_MEMORY.
enum err suppressions_of_nodes(const struct suppressions *list,
                               const struct profile *profile,
                               struct u32_vec *out) MUST_USE;
