// SPDX-License-Identifier: MIT
// known_functions: whether the recorded program has a function that matches, on a stack or not.
//
// A budget for a mistyped function name would always pass. So a name is searched on the stacks
// first, then in the symbol tables and the debug information of the recorded executables and
// libraries that still exist (by build-id).
// Context: H.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "host/text/strbuf.h"
#include "profile/model/profile.h"
#include "profile/select/pattern.h"

enum {
    KNOWN_FUNCTIONS_BLIND_NAMED = 3
};

struct known_functions {
    bool is_known;
    size_t blind_count;  // modules that may have functions without a findable name
    struct strbuf blind; // owned; file names of the first ..._NAMED of them, with commas
};

// Find out whether a function matches `pattern`. `sources`, in addition to the standard places, may
// be NULL. The search stops at the first match. Errors: ERR_NO_MEMORY, those of pattern_result.
enum err known_functions_find(const struct profile *profile,
                              const struct name_sources *sources,
                              struct pattern *pattern,
                              struct known_functions *out,
                              struct err_info *info) MUST_USE;
void known_functions_release(struct known_functions *known);
