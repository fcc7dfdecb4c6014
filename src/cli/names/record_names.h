// SPDX-License-Identifier: MIT
// record_names: gives the frames of a fresh recording their functions, files and lines.
//
// The recorder asks for this once, when the program has ended (recorder_callbacks.name_frames); it
// joins the symbolizer, of which the recorder knows nothing, to the recording's tables. Much of it
// has been looked up before (background_symbolizer).
// Context: H.
#pragma once

#include "base/err.h"
#include "cli/names/background_symbolizer.h"
#include "host/os/progress.h"
#include "recorder/recorder.h"

// `recording` borrows its strings from `strings`, which moves: nothing of it is read after the
// first new string. If the sources are off, the recording says that nobody has looked for names.
// `ahead` is ended; if it has not begun, `sources` are asked. `progress` may be
// NULL. ERR_NO_MEMORY, ERR_LIMIT.
enum err record_names_add(struct recording *recording,
                          const struct name_sources *sources,
                          struct background_symbolizer *ahead,
                          struct string_table *strings,
                          struct rec_symbol_vec *symbols,
                          struct progress *progress) MUST_USE;
