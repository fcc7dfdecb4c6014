// SPDX-License-Identifier: MIT
// program_start: whether a process was still starting when its recording ended.
//
//   new call stacks   ##                      a program that serves, or repeats its work
//                     ##########  #########   one that starts: it comes to new code to its end
//
// A start leaves blocks all along, and looks like growth where the run is little more than that.
// How long it takes depends on the machine: on a busy one that is some ten seconds.
// Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "profile/model/profile.h"

// Whether a process that cairn has seen start lived at most START_MS_MAX, and came to a sixteenth
// of its call stacks only in the last quarter of that. One with few stacks repeats its work.
// `until_ms`: judge only the time up to then; 0: all.
bool program_start_is_all(const struct profile *profile, uint32_t process, uint64_t until_ms)
    MUST_USE;
