// SPDX-License-Identifier: MIT
// workspace: paths as annotations of source code need them: relative to the checked-out tree.
//
// The tree is $GITHUB_WORKSPACE, or else the current folder. Context: H; one thread at a time.
#pragma once

// Return the part of `path` below the tree, or `path` itself if it is elsewhere. Borrowed.
const char *workspace_path(const char *path);
