// SPDX-License-Identifier: MIT
// known_functions: whether the recorded program has a function that matches, on a stack or not.
//
// A budget for a function that no stack has is kept for ever if the name was mistyped. So the names
// on the stacks are asked first, then the symbol tables and the debug information of the
// executables and libraries that were recorded, as far as they are still there (by build-id).
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
    size_t blind_count;  // modules that may have functions whose names are not to be found
    struct strbuf blind; // owned; the file names of the first ..._NAMED of these, with commas
};

// Whether a function matches `pattern`. `sources`, which may be NULL, are asked beside the standard
// places. Once one does, no further module is read. ERR_NO_MEMORY, or
// what pattern_result says.
enum err known_functions_find(const struct profile *profile,
                              const struct name_sources *sources,
                              struct pattern *pattern,
                              struct known_functions *out,
                              struct err_info *info) MUST_USE;
void known_functions_release(struct known_functions *known);
