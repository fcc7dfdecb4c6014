// SPDX-License-Identifier: MIT
// deferred_symbols: looks up names for frames that the recording has none for.
//
// A finished recording holds its symbols, and they are trusted: it may come from another machine. A
// checkpoint and a raw recording of another tool have no symbols; a file marked REC_UNKNOWN_NAMES
// has some. The missing names are looked up when the file is opened, in the files that the modules
// name.
// Modules of a finished recording are looked up again if they had no debug information and the
// caller passes sources (name_sources.h): debug information may be available by now. Such a lookup
// needs a build-id; modules without one are skipped. Names that it finds replace the recorded ones.
// The recording itself is not changed.
// Context: H; one thread.
#pragma once

#include "base/err.h"
#include "host/os/progress.h"
#include "profile/model/deferred_lookup.h"
#include "recording/format/tables.h"

// Look up the names that `recording` lacks; having nothing to look up is success. A `lookup` that
// is not NULL must have started with the same modules and frames, or with the first of them.
// Without a `lookup`, use `sources`, which may be NULL; they may also replace names by better ones.
// `progress` may be NULL. An unreadable module is not an error. Errors: ERR_NO_MEMORY, ERR_LIMIT.
enum err deferred_symbols_find(const struct recording *recording,
                               const struct name_sources *sources,
                               struct deferred_lookup *lookup,
                               struct progress *progress,
                               struct deferred_symbols *out) MUST_USE;
