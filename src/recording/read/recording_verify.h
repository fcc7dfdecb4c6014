// SPDX-License-Identifier: MIT
// recording_verify: check the figures of a recording against each other.
//
// The recording is one of recording_open_fd or of an importer, whose indices are sound and whose
// tables are sorted. Here sums are added up, and costs compared. Of each check at
// most the first few findings have a sentence; all are counted. Time: as for sorting the rows.
// Context: H.
#pragma once

#include <stdint.h>

#include "base/compiler.h"
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
    unsigned in_check;                // number of findings of the current check
    enum err err;                     // ERR_NO_MEMORY: a finding has no sentence for lack of it
};

// Add a finding of the current check. Set in_check to 0 before each check.
void recording_findings_add(struct recording_findings *findings,
                            enum recording_invariant invariant,
                            const char *format,
                            ...) PRINTF_LIKE(3, 4);

uint64_t recording_findings_count(const struct recording_findings *findings);
void recording_findings_release(struct recording_findings *findings);

// Add findings to `out`, which must be zeroed or from an earlier call. A finding gives ERR_OK.
// ERR_NO_MEMORY.
enum err recording_verify(const struct recording *recording, struct recording_findings *out)
    MUST_USE;
