// SPDX-License-Identifier: MIT
// test_holding: how long the nursery of a test holds blocks before it judges whether that gains
// anything. Tests that want blocks to be held do not depend on how many pairs they make. Context:
// tests.
#pragma once

#include <stdint.h>

#include "session/layout.h"

#define TEST_HOLDS_ALWAYS UINT32_MAX

// Counted in ticks of the lane; 0: it judges at the next one. To be called after nursery_init.
static inline void test_hold_for(struct lane_header *lane, uint32_t ticks)
{
    lane->nursery.trial_ticks = ticks;
}
