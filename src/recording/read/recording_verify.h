// SPDX-License-Identifier: MIT
// recording_verify: check the figures of a recording against each other.
//
// The recording is one of recording_open_fd or of an importer, whose indices are sound and whose
// tables are sorted. Here sums are added up, and costs compared. Time: as for sorting the rows.
// Context: H.
#pragma once

#include "base/err.h"
#include "recording/format/tables.h"
#include "recording/read/recording_findings.h"

// Add findings to `out`, which must be zeroed or from an earlier call. A finding gives ERR_OK.
// ERR_NO_MEMORY.
enum err recording_verify(const struct recording *recording, struct recording_findings *out)
    MUST_USE;
