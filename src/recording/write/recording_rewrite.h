// SPDX-License-Identifier: MIT
// recording_rewrite: puts another snapshot into a finished recording file, in one step.
//
// The new file has the chunks of the old one that belong to no snapshot (its log of events), as
// they are, and the snapshot; the old one is there until the new one is whole. It keeps its mode,
// and its owner where that can be. Context: H.
#pragma once

#include "base/err.h"
#include "recording/format/tables.h"

// `generation` is that of the snapshot that `recording` takes the place of. What recording_write
// says, and ERR_CORRUPT for a chunk that cannot be copied, ERR_TRUNCATED for a file without an end.
enum err recording_rewrite(const char *path,
                           const struct recording *recording,
                           uint32_t generation,
                           struct err_info *info) MUST_USE;
