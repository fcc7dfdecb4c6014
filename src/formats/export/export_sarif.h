// SPDX-License-Identifier: MIT
// export_sarif: SARIF 2.1.0, which code scanning shows beside the source: GitHub, VS Code.
//
// Each finding is a result with its line and its heaviest stack. `cairn check` adds a result for
// each budget that was exceeded. A path below the checked-out tree is relative to it.
// Every result has a location, as GitHub requires: without a line it is the program. Context: H.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "formats/export/exporter.h"

// A result besides the findings. All texts are borrowed.
struct sarif_result {
    const char *rule;  // "max-peak"
    const char *level; // "error", "warning" or "note"
    const char *message;
    const char *file; // "": unknown
    uint32_t line;    // 0: unknown
};

// Write the findings of the view, and before them `results`.
enum err export_sarif_write(const struct export_view *view,
                            const struct sarif_result *results,
                            size_t count,
                            FILE *out) MUST_USE;

// Return the part of `path` below the tree, $GITHUB_WORKSPACE or else the current folder, or `path`
// itself if it is elsewhere. Borrowed.
const char *workspace_path(const char *path);
