// SPDX-License-Identifier: MIT
// growth_births: a history judged by when the blocks that are never freed were allocated.
//
// The rules apply in this order. Births whose last one is old, compared with the gaps between them,
// have stopped, and so have those after which only a few young blocks came that did not raise the
// level. What was about as much long before the first of them is bounded. Else the window from the
// first birth to the end is divided into quarters. If the third quarter has no birth, everything
// before it is ignored, and a new window begins after it. A window whose level is as high at its
// start as at its end is bounded. A window whose level had been as high before, and had fallen
// since, is a sawtooth or a burst. A window of less than a tenth of the process's life is late.
// Other windows grow if the level rises from the third quarter to the last by at least half the
// births of the third, except for noise (the median distance from the median), and if either the
// second quarter has births too or the rise is clear.
// If most births of the last half are in an eighth of it, that is one step: it has no slope, and
// the verdict is unsure.
// Context: H; pure.
#pragma once

#include "base/err.h"
#include "profile/growth/growth_history.h"

// The history has births.
enum err growth_births_judge(const struct growth_history *h, struct growth_verdict *out) MUST_USE;
