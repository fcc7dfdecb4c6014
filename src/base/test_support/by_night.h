// SPDX-License-Identifier: MIT
// by_night: what a long test takes in part by day, and whole in `make nightly`, which sets
// CAIRN_NIGHTLY. Context: tests.
#pragma once

#include <stdbool.h>
#include <stdlib.h>

// The step through a list: each entry by night, else one of each `step`.
static inline unsigned step_by_day(unsigned step)
{
    return getenv("CAIRN_NIGHTLY") != NULL ? 1 : step;
}
