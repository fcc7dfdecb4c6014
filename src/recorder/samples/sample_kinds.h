// SPDX-License-Identifier: MIT
// sample_kinds: the kinds of pages of a sample of resident memory, and a snapshot of that moment.
//
// A snapshot reads the whole map, some milliseconds after the sample, so its sum is another one.
// Context: H; pure.
#pragma once

#include "recording/format/tables.h"

// Take the resident bytes of the snapshot. Pages that have come since the sample are of the kinds
// that the snapshot has more of, and pages that have gone are of those that it has fewer of. The
// kinds add up to the resident bytes.
void sample_kinds_fit(struct rec_rss_sample *sample, const struct rec_memory_snapshot *snapshot);
