// SPDX-License-Identifier: MIT
// nursery_turn: what nursery.c and nursery_turn.c say to each other. Context: T, as nursery.h.
#pragma once

#include "session/nursery.h"

// Brings limit_bytes up to date, after a change of ceiling_bytes, sent_bytes or is_holding.
void nursery_set_limit(struct nursery *n);

// Sends all folds and HELD blocks.
bool nursery_send_all(struct lane_producer *p) MUST_USE;
