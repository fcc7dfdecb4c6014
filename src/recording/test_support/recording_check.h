// SPDX-License-Identifier: MIT
// recording_check: for tests: check a recording against every invariant of tables.h.
//
// Indices, trees and the order of tables are what recording_repair ensures for every recording that
// is opened. This shares no code with it, so each checks the other. recording_verify checks the
// figures. No input makes it read out of bounds: the figures are checked only if the rest is sound.
// Context: H.
#pragma once

#include "recording/read/recording_verify.h"

// Add findings to `out`, as recording_verify does.
enum err recording_check(const struct recording *recording, struct recording_findings *out)
    MUST_USE;
