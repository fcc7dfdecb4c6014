// SPDX-License-Identifier: MIT
// coverage: how much of each module's code has names, and how to get the missing ones.
//
// It counts distinct frames on any stack, whatever the filter. It measures how far the report can
// be trusted, not what the program did. Context: H.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/model/profile.h"

struct module_coverage {
    uint64_t frames;
    uint64_t with_function; // the function's name is known
    uint64_t with_line;     // file and line are known too
};

DEFINE_VEC(module_coverage_vec, struct module_coverage);

// Build one entry for each module of the recording, and a last one for code outside any file.
enum err coverage_build(const struct profile *profile, struct module_coverage_vec *out) MUST_USE;
