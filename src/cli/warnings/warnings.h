// SPDX-License-Identifier: MIT
// warnings: limits of a recording that a reader must know before trusting its figures.
//
// One line each: damage, a run without an end, pauses, sampling, losses, and programs that were not
// recorded. Context: H. Output errors are found when the stream is closed.
#pragma once

#include <stdio.h>

#include "base/err.h"
#include "profile/model/profile.h"
#include "symbols/names/name_sources.h"

// Write every warning of `profile`; each line begins with `prefix`.
void warnings_write(const struct profile *profile, const char *prefix, FILE *out);

// Open the recording or foreign file at `path`, showing progress, and write its warnings to stderr.
enum err warnings_open_profile(const char *path,
                               const struct name_sources *sources,
                               struct profile **out,
                               struct err_info *info) MUST_USE;

// Write only the warnings about unrecorded programs and unseen heaps.
void warnings_write_unseen(const struct profile *profile, const char *prefix, FILE *out);
