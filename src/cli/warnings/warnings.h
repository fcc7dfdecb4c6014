// SPDX-License-Identifier: MIT
// warnings: limits of a recording that a reader must know before trusting its figures.
//
// One line each: damage, a run without an end, pauses, sampling, losses, and programs that were not
// recorded. Context: H. Output errors are found when the stream is closed.
#pragma once

#include <stdio.h>

#include "profile/model/profile.h"

// Write every warning of `profile`; each line begins with `prefix`.
void warnings_write(const struct profile *profile, const char *prefix, FILE *out);

// Write only the warnings about unrecorded programs and unseen heaps.
void warnings_write_unseen(const struct profile *profile, const char *prefix, FILE *out);
