// SPDX-License-Identifier: MIT
// name_regex: regular expressions over names, by PCRE2 with limits.
//
// Names are UTF-8. Bytes that are not UTF-8 match nothing and are not an error. A dot also matches
// a line feed. $ matches only at the end of the name.
// Trust: expressions come from a browser, and some take exponential time. The steps and the memory
// of each match are limited, and so is the processor time of all matches of an expression. Once a
// limit is reached, nothing matches, and name_regex_result() reports it.
// Context: H; an expression is used by one thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct name_regex {
    const char *name;                          // borrowed; of the expression, for errors
    struct pcre2_real_code_8 *code;            // owned
    struct pcre2_real_match_data_8 *match;     // owned
    struct pcre2_real_match_context_8 *limits; // owned
    uint64_t budget_ns;                        // processor time for all matches
    uint64_t began_ns;                         // the thread's processor time at the first match
    uint64_t seen_ns;                          // the coarse clock at the last check of the budget
    bool is_exhausted;                         // a limit was reached
};

// Compile an expression. Errors name it `name`, which must outlive `out`: ERR_INVALID if it is
// malformed, ERR_LIMIT if it is too large, ERR_NO_MEMORY.
enum err name_regex_compile(struct name_regex *out,
                            const char *text,
                            const char *name,
                            struct err_info *info) MUST_USE;

void name_regex_release(struct name_regex *regex); // accepts a zeroed one

// Whether some part of `text` matches. False once a limit was reached.
bool name_regex_matches(struct name_regex *regex, const char *text);

// ERR_LIMIT with a sentence once a limit was reached.
enum err name_regex_result(const struct name_regex *regex, struct err_info *info) MUST_USE;
