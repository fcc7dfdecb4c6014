// SPDX-License-Identifier: MIT
// nursery_turn: what nursery.c and nursery_turn.c say to each other. Context: T, as nursery.h.
#pragma once

#include "session/nursery.h"

// Sends all folds and HELD blocks.
bool nursery_send_all(struct lane_producer *p) MUST_USE;
