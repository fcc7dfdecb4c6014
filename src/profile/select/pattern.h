// SPDX-License-Identifier: MIT
// pattern: the text or regular expression that names are compared with.
//
// A text matches names that contain it, without regard to the case of ASCII letters. A regular
// expression is PCRE2's and case-sensitive (name_regex.h).
// A function matches with or without return type, parameters and template arguments: "^process$"
// and "^process(int)$" both match process(int). A text without brackets and spaces is compared with
// the name without these parts, any other text with the whole name.
// Trust: patterns and names are hostile. Regular expressions have limits; code that compares many
// names calls pattern_result() in between. Context: H; a pattern is used by one thread at a time.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "host/text/strbuf.h"
#include "profile/select/name_regex.h"

enum pattern_kind {
    PATTERN_TEXT,
    PATTERN_REGEX,
};

struct pattern {
    enum pattern_kind kind;
    const char *text; // borrowed
    struct name_regex regex;
    struct strbuf form; // buffer: the last function name, without some parts
};

// `text` and `name` must outlive the pattern. Errors: those of name_regex_compile.
enum err pattern_init(struct pattern *pattern,
                      enum pattern_kind kind,
                      const char *text,
                      const char *name,
                      struct err_info *info) MUST_USE;

void pattern_release(struct pattern *pattern); // accepts a zeroed one

bool pattern_matches(struct pattern *pattern, const char *name);

// Whether the demangled name of a function matches, in any of its forms.
bool pattern_matches_function(struct pattern *pattern, const char *name);

// ERR_LIMIT with a sentence once a regular expression reached a limit.
enum err pattern_result(const struct pattern *pattern, struct err_info *info) MUST_USE;

// Whether a pattern of a rule for leaks, without its "leak:", matches a name, as LeakSanitizer has
// it:
//   name      contains it        ^name    begins with it
//   name$     ends with it       a*b      * stands for any text
bool leak_pattern_matches(const char *pattern, const char *name);

// The first letter of each name that such a pattern matches; 0: any.
char leak_pattern_first(const char *pattern);
