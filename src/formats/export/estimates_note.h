// SPDX-License-Identifier: MIT
// estimates_note: the words with which an export says that its figures are estimates, for formats
// that have a place for a text but none for the error of each figure.
//
//   all figures are estimates: 1 of 214 allocations was recorded, at least one in 512 KiB; errors:
//   alloc_space ±2%, inuse_space ±21%
//
// An error is two standard errors of a total, as a share of it (profile/accuracy/sampling.h). Of a
// total of 0 bytes the note has what may be missing: "inuse_space at most 1.50 MiB".
// Context: H; pure.
#pragma once

#include <stddef.h>

#include "formats/export/exporter.h"
#include "host/text/strbuf.h"

// A total whose error is stated, by its name in the format.
struct estimated_total {
    const char *name;
    enum cost cost;
};

// Append `before`, the note and `after`; append nothing if the recording is exact. Totals that are
// unknown, and numbers of 0, are left out.
void estimates_note_append(const struct export_view *view,
                           const struct costs *costs,
                           const struct estimated_total *totals,
                           size_t total_count,
                           const char *before,
                           const char *after,
                           struct strbuf *out);
