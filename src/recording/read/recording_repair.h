// SPDX-License-Identifier: MIT
// recording_repair: make a recording safe to walk, for any file content.
//
// A checksum proves that the bytes are unchanged, not that their writer was sane; and a damaged
// file lacks entries that others refer to.
// Invariants afterwards: every index is in its table, or is REC_NONE where that is allowed; node 0
// is the root; parents come before their children; the parents of processes form no circle; cells,
// buckets and cohorts are sorted without duplicates; no row freed more than it allocated. It drops
// an entry that lost its meaning and keeps one that lost a name. It does not change sums:
// recording_verify compares them. Linear time. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "recording/format/tables.h"

struct repair_tally {
    uint64_t dropped;  // dropped entries
    uint64_t repaired; // repaired fields
};

// Repair `recording`, which must own its arrays. If `has_totals` is false, make the totals from the
// rows. After ERR_NO_MEMORY or ERR_LIMIT (no room for one more frame) the recording must only be
// released.
enum err recording_repair(struct recording *recording, bool has_totals, struct repair_tally *tally)
    MUST_USE;
