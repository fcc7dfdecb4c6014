// SPDX-License-Identifier: MIT
// litter: remove temporary files of killed cairn processes.
//
// A file that replaces another has a temporary name, PATH.PID-N.tmp, between two system calls
// (file.h). A process that is killed there leaves it behind. Context: H.
#pragma once

// Remove the temporary files of `path` that are at least a minute old and whose process has ended.
// Files that cannot be read or removed stay.
void litter_remove(const char *path);
