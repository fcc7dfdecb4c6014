// SPDX-License-Identifier: MIT
// litter: names that killed processes of ours have left beside a file.
//
// A file that takes the place of another has a name of its own, PATH.PID-N.tmp, between two system
// calls (file.h). Who is killed just there leaves it behind. Context: H.
#pragma once

// Removes those beside `path` that are a minute old, and whose process is gone. What cannot be
// read or removed stays.
void litter_remove(const char *path);
