// SPDX-License-Identifier: MIT
// recording_verify: holds a recording against every invariant that tables.h states.
//
// It shares no code with recording_repair, so each checks the other. Nothing that it is given can
// make it read out of bounds: a check that needs sound indices is left out if they are not.
// Time is that of sorting the rows. Context: H.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

enum recording_invariant {
    INVARIANT_INDEX,  // an index is not in its table
    INVARIANT_TREE,   // the root, parents before children, no circle of processes
    INVARIANT_ORDER,  // sorted, without duplicates
    INVARIANT_UNIQUE, // one row for a stack on a thread
    INVARIANT_COST,   // a figure of one entry contradicts another of the same entry
    INVARIANT_SUM,    // figures do not add up
    INVARIANT_COUNT,
};

struct recording_finding {
    enum recording_invariant invariant;
    char text[200]; // one sentence without a full stop
};
DEFINE_VEC(finding_vec, struct recording_finding);

struct recording_findings {
    struct finding_vec items;         // owned; at most the first few of each check
    uint64_t counts[INVARIANT_COUNT]; // of all
};

// Adds what it finds to `out`, which must be zeroed or from an earlier call. Finding something is
// no error; ERR_NO_MEMORY is.
enum err recording_verify(const struct recording *recording, struct recording_findings *out)
    MUST_USE;

uint64_t recording_findings_count(const struct recording_findings *findings);
void recording_findings_release(struct recording_findings *findings);
