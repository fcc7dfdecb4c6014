// SPDX-License-Identifier: MIT
// recording_rewrite: replace the snapshot of a finished recording file in one step.
//
// The new file has the old file's chunks outside of snapshots (its event log), unchanged, and the
// new snapshot. The old file stays until the new one is complete. The new file keeps the mode, and
// the owner if permitted. Context: H.
#pragma once

#include "base/err.h"
#include "recording/format/tables.h"

// Write `recording` in place of the snapshot with number `generation`. Fails as recording_write
// does, with ERR_CORRUPT for a chunk that cannot be copied, and with ERR_TRUNCATED for a file
// without an end.
enum err recording_rewrite(const char *path,
                           const struct recording *recording,
                           uint32_t generation,
                           struct err_info *info) MUST_USE;
