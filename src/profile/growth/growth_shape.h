// SPDX-License-Identifier: MIT
// growth_shape: whether the memory that a process holds by some stacks keeps growing.
//
// Two figures are known for each time slice: the bytes live at its end, and the births, the bytes
// allocated in it that are never freed. Births distinguish what levels cannot: a leak leaves
// unfreed blocks in every part of the run, a cache that is renewed leaves only young ones.
//
//        live   ____/\_/\/\_/\_/\/\_/\     births             . .. ..   bounded
//               __/\/\/\/\/\/\/\//\/\/\    births . .. . . . . . .  .   growing, under it a noise
//               __/````````````````````    births ....                  start_up, or stopped
//               _/|_/|_/|_/|_/|_/|_/|_/    births                  ...  sawtooth
//
// Growth is looked for in the births (growth_births.h) and in the lowest levels (growth_floor.h),
// within the time in which the process worked (growth_work.h). What grew as long as there was work
// is growing, even if the process was idle afterwards; its confidence is lower, as nothing is known
// of the time without work. If nothing else was allocated while it grew, it may as well have been a
// warm-up: then it has stopped, with low confidence.
// A rise whose blocks are of stacks that left none before is a start (growth_repeats.h), however
// long that took: there is no verdict then.
// What does not grow is classified by its births, in the time with work, too.
// Context: H; pure.
#pragma once

#include "base/err.h"
#include "profile/growth/growth_history.h"

// ERR_NO_MEMORY.
enum err growth_judge(const struct growth_history *history, struct growth_verdict *out) MUST_USE;
