// SPDX-License-Identifier: MIT
// row_changes: what the rows of a recording allocated since an earlier state of the same run.
//
// Rows are numbered anew in each checkpoint, so a row is found again by its content: the modules
// and offsets of its stack, and its thread. Rows of equal content share their sum. The changes add
// up to the change of all rows: stacks that were merged meanwhile (--max-memory) do not count
// twice.
// Context: H; pure.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/vec.h"
#include "profile/model/profile.h"

struct row_change {
    uint64_t allocations;
    uint64_t allocated_bytes;
};

DEFINE_VEC(row_change_vec, struct row_change);

// The state up to which changes have been computed. Zeroed: the start of the run.
struct row_sums {
    struct map_u64 indices;     // owned; content of a row -> index in `sums`
    struct row_change_vec sums; // owned
};

void row_sums_release(struct row_sums *history);

// Set *out, which the caller releases, to the change of each row of the recording, and advance the
// history to it. ERR_NO_MEMORY leaves the history as it was.
enum err row_sums_advance(struct row_sums *history,
                          const struct profile *profile,
                          struct row_change_vec *out) MUST_USE;
