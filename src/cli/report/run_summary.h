// SPDX-License-Identifier: MIT
// run_summary: the few lines after a run that say where its memory went.
//
// Context: H. Writes to stderr only; problems are told there, too, and change nothing else: the run
// is over.
#pragma once

#include "recording/format/tables.h"

// Prints the figures of a recording, the top three of each section, what was lost, and the command
// that looks further into the file at `path`, where it was written.
void run_summary_print(const struct recording *recording, const char *path);
