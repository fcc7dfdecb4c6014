// SPDX-License-Identifier: MIT
// recording_verify: check a recording against every invariant of tables.h.
//
// It shares no code with recording_repair, so each checks the other. No input makes it read out of
// bounds: it omits checks that need sound indices if the indices are not sound.
// Time: as for sorting the rows. Context: H.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

enum recording_invariant {
    INVARIANT_INDEX,  // an index outside its table
    INVARIANT_TREE,   // the root, parents before children, no circle of processes
    INVARIANT_ORDER,  // sorted, without duplicates
    INVARIANT_UNIQUE, // one row for each stack on a thread
    INVARIANT_COST,   // a figure contradicts another of the same entry
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
    uint64_t counts[INVARIANT_COUNT]; // number of all findings, by check
};

// Add findings to `out`, which must be zeroed or from an earlier call. A finding gives ERR_OK.
// ERR_NO_MEMORY.
enum err recording_verify(const struct recording *recording, struct recording_findings *out)
    MUST_USE;

uint64_t recording_findings_count(const struct recording_findings *findings);
void recording_findings_release(struct recording_findings *findings);
