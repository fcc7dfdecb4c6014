// SPDX-License-Identifier: MIT
// name_regex: regular expressions over names, by PCRE2 with limits.
//
// Names are UTF-8; bytes that are not UTF-8 match nothing and are no error. A dot also matches a
// line feed, and $ only the end of the name.
// Trust: expressions reach us from a browser, and some take exponential time. So the steps and the
// memory of one match are limited, and so is the processor time of all matches of an expression
// together. When a limit is reached, nothing matches from then on, and name_regex_result() says so.
// Context: H; an expression is used by one thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct name_regex {
    const char *name;                          // borrowed; which expression, for errors
    struct pcre2_real_code_8 *code;            // owned
    struct pcre2_real_match_data_8 *match;     // owned
    struct pcre2_real_match_context_8 *limits; // owned
    uint64_t budget_ns;                        // of processor time, for all matches
    uint64_t began_ns;                         // the thread's processor time then; 0: not yet
    uint64_t seen_ns;                          // the coarse clock when the budget was checked
    bool is_exhausted;                         // a limit was reached
};

// `name` says in errors which expression is wrong and must outlive `out`. ERR_INVALID for one that
// makes no sense, ERR_LIMIT for one that is too large, ERR_NO_MEMORY.
enum err name_regex_compile(struct name_regex *out,
                            const char *text,
                            const char *name,
                            struct err_info *info) MUST_USE;

void name_regex_release(struct name_regex *regex); // accepts a zeroed one

// Whether some part of `text` matches. False once a limit was reached.
bool name_regex_matches(struct name_regex *regex, const char *text);

// ERR_LIMIT with a sentence once a limit was reached.
enum err name_regex_result(const struct name_regex *regex, struct err_info *info) MUST_USE;
