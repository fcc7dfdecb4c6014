// SPDX-License-Identifier: MIT
// run_summary: prints a few lines after a run: where the memory went.
//
// Context: H. Writes only to stderr. Errors are printed there too and change nothing else, because
// the run has ended.
#pragma once

#include "recording/format/tables.h"

// Print the totals of a recording, the top three of each section, the losses, and the command that
// opens the file at `path`.
void run_summary_print(const struct recording *recording, const char *path);
