// SPDX-License-Identifier: MIT
// test_holding: sets how long the nursery of a test holds blocks before it judges whether holding
// pays. So tests of held blocks do not depend on the number of pairs that they make. Context:
// tests.
#pragma once

#include <stdint.h>

#include "session/layout.h"

#define TEST_HOLDS_ALWAYS UINT32_MAX

// Hold for `ticks` ticks of the lane; 0: until the next tick. Call this after nursery_init.
static inline void test_hold_for(struct lane_header *lane, uint32_t ticks)
{
    lane->nursery.trial_ticks = ticks;
}
