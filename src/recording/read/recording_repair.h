// SPDX-License-Identifier: MIT
// recording_repair: makes a recording safe to walk, whatever was in the file.
//
// A checksum proves that bytes arrived as they were written, not that a sane writer wrote them; and
// a damaged file lacks entries that others refer to. Afterwards every index is in its table or is
// REC_NONE where that is allowed, node 0 is the root, parents come before their children, processes
// have no circle of parents, cells, buckets and cohorts are sorted without duplicates, and no row
// freed more than it allocated. What has lost its meaning is dropped, what has lost a name is kept.
// Sums are not touched: recording_verify compares them. Linear time. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "recording/format/tables.h"

struct repair_tally {
    uint64_t dropped;  // entries
    uint64_t repaired; // fields
};

// `recording` must own its arrays. If `has_totals` is false the totals are made from the rows.
// ERR_NO_MEMORY, ERR_LIMIT (no room for one more frame); the recording must then only be released.
enum err recording_repair(struct recording *recording, bool has_totals, struct repair_tally *tally)
    MUST_USE;
