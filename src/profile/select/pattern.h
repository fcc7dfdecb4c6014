// SPDX-License-Identifier: MIT
// pattern: what a name is compared with: a part of it, or a regular expression.
//
// A text matches names that contain it, whatever the case of ASCII letters. A regular expression is
// PCRE2's and minds the case (name_regex.h). Functions are matched as they are shown, which
// is with or without return type, parameters and template arguments: "^process$" and
// "^process(int)$" both match process(int). A text is compared with what is shown in any case, the
// name without all these, unless it has a bracket or a space itself. Both may come from strangers,
// and so may the names: regular expressions have limits, and code that compares many names calls
// pattern_result() in between. Context: H; a pattern is used by one thread at a time.
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
    struct strbuf form; // of the function that was compared last
};

// `text` and `name` must outlive the pattern. Errors: those of name_regex_compile.
enum err pattern_init(struct pattern *pattern,
                      enum pattern_kind kind,
                      const char *text,
                      const char *name,
                      struct err_info *info) MUST_USE;

void pattern_release(struct pattern *pattern); // accepts a zeroed one

bool pattern_matches(struct pattern *pattern, const char *name);

// The same for the demangled name of a function.
bool pattern_matches_function(struct pattern *pattern, const char *name);

// ERR_LIMIT with a sentence once a regular expression has reached a limit.
enum err pattern_result(const struct pattern *pattern, struct err_info *info) MUST_USE;
