// SPDX-License-Identifier: MIT
// record_names: gives the frames of a new recording their functions, files and lines.
//
// The recorder calls this once, when the program has ended (recorder_callbacks.name_frames). The
// recorder does not know the symbolizer; this module joins the symbolizer's answers to the tables
// of the recording. background_symbolizer has looked up many of them before. Context: H.
#pragma once

#include "base/err.h"
#include "cli/names/background_symbolizer.h"
#include "host/os/progress.h"
#include "recorder/recorder.h"

// Add the names of all frames. `recording` borrows its strings from `strings`, which moves, so no
// string of `recording` is read after the first new string. If the sources are off, mark the names
// of the recording as not looked up. `ahead` is ended; if it never began, `sources` are asked.
// `progress` may be NULL. Return ERR_NO_MEMORY or ERR_LIMIT.
enum err record_names_add(struct recording *recording,
                          const struct name_sources *sources,
                          struct background_symbolizer *ahead,
                          struct string_table *strings,
                          struct rec_symbol_vec *symbols,
                          struct progress *progress) MUST_USE;
