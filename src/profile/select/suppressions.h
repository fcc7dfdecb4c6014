// SPDX-License-Identifier: MIT
// suppressions: rules for leaks that nobody wants to hear of, as LeakSanitizer writes them.
//
//   # comment
//   leak:load_plugins            a function, source file or module on the stack contains this
//   leak:^lib*crypto$            ^ and $ hold the ends, * is anything
//
// A function is matched with and without its return type, parameters and template arguments.
// A stack is suppressed by the rule that matches its innermost matching frame, inlined ones
// included; of several rules the first. Two of the built-in rules are of another kind: they say in
// which module's code the innermost frame is, and come last. Its memory is then not leaked:
// profile_select takes it out of the leaked costs, and counts it for the rule. Rules come from
// three places: a list of our own for what the C library and its friends keep for ever, the program
// itself (__lsan_default_suppressions, rec_meta.suppressions), and a file. Input is hostile: work
// is proportional to rules times distinct names. Context: H.
#pragma once

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
    // Static: the rule of code that the pattern is only the words for; NULL: the pattern is the
    // rule.
    const struct code_rule *code;
};

DEFINE_VEC(suppression_vec, struct suppression);

struct suppressions {
    struct suppression_vec rules; // owned
    struct strbuf texts;          // owned; each ended by a zero byte
};

// What came of a rule in a selection.
struct suppression_match {
    uint64_t stack_count; // rows with something leaked
    uint64_t leaked_bytes;
    uint64_t leaked_allocations;
};

DEFINE_VEC(suppression_match_vec, struct suppression_match);

// Appends the rules of a text. `name` is the file's, for errors: "file:3: ..." with ERR_INVALID for
// a line that is no rule of leaks; NULL: such lines are passed over. ERR_LIMIT for too many.
enum err suppressions_add(struct suppressions *list,
                          struct bytes text,
                          enum suppression_source source,
                          const char *name,
                          struct err_info *info) MUST_USE;

// The rules that the recorded program held.
enum err suppressions_add_embedded(struct suppressions *list,
                                   const struct recording *recording,
                                   struct err_info *info) MUST_USE;

enum err suppressions_add_built_in(struct suppressions *list) MUST_USE;

// What applies to a recording unless somebody says otherwise: the rules that it holds, then the
// built-in ones.
enum err suppressions_add_usual(struct suppressions *list,
                                const struct recording *recording,
                                struct err_info *info) MUST_USE;

void suppressions_release(struct suppressions *list);

static inline const char *suppression_pattern(const struct suppressions *list, size_t rule)
{
    return strbuf_text(&list->texts) + list->rules.items[rule].pattern;
}

// Whether a pattern, without its "leak:", matches a name.
bool suppression_matches(const char *pattern, const char *name);

// By node of the recording: the rule that suppresses its stack, + 1; 0: none does. Left empty if no
// rule matches anything. ERR_NO_MEMORY.
enum err suppressions_of_nodes(const struct suppressions *list,
                               const struct profile *profile,
                               struct u32_vec *out) MUST_USE;
