// SPDX-License-Identifier: MIT
// built_in_rules: what the C library, other libraries and runtimes of languages keep on purpose.
//
// Constant data for suppressions.h, which has the syntax of the names. Context: H.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Matches blocks by the code that allocated them. Parts that are NULL match any.
struct code_rule {
    const char *words; // for display
    // Patterns for paths of modules: of the innermost frame, and of its caller. With `is_run` the
    // innermost frames may be several of such modules. The first has no other callee. These are
    // needed where there are no names.
    const char *module;
    const char *caller;
    bool is_run;
    // With `is_run`: patterns for functions, the last one NULL. The frames of the run all have
    // names, and none of these.
    const char *const *no_function;
    // Patterns for functions, the last one NULL: a frame farther out has one of them.
    const char *const *within;
    // A pattern for the function of the call site.
    const char *site;
};

struct built_in_rules {
    const char *const *names;
    size_t name_count;
    const struct code_rule *code;
    size_t code_count;
};

extern const struct built_in_rules built_in_rules;
