// SPDX-License-Identifier: MIT
// warnings: what the reader of a recording must know before trusting any figure of it.
//
// One line each: damage, a run that had not ended, pauses, sampling, losses, and what was executed
// but not recorded. Context: H. Output errors are found when the stream is closed.
#pragma once

#include <stdio.h>

#include "profile/model/profile.h"

// Writes every warning of `profile`, each line beginning with `prefix`.
void warnings_write(const struct profile *profile, const char *prefix, FILE *out);

// Writes only those about programs that were not recorded and heaps that were not seen.
void warnings_write_unseen(const struct profile *profile, const char *prefix, FILE *out);
