// SPDX-License-Identifier: MIT
// growth_floor: growth of memory whose blocks are replaced, judged by its level alone.
//
// The floor of a slice is the lowest level from there to the end: bytes that were held ever since,
// in whatever blocks. An array that is reallocated, a buffer that is replaced by a larger one and a
// queue that falls behind raise it, although the blocks that are left at the end are young.
//
//        live   __/|/|/|/|/     floor  ____/```/```/     growing: it rises as long as it is seen
//        live   _/|_/|_/|_/     floor  ___________./     a sawtooth: only behind its last trough
//        live   _/~~~~~~~~~     floor  _/``````````      bounded: it rose once
//
// A rise is at least as high as the noise, which is how far the level usually is above its floor.
// Context: H; pure.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "profile/growth/growth_history.h"

// Set *is_growing, and *out if it is.
enum err growth_floor_judge(const struct growth_history *h,
                            bool *is_growing,
                            struct growth_verdict *out) MUST_USE;
