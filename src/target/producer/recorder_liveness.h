// SPDX-License-Identifier: MIT
// recorder_liveness: is there still somebody who reads this session? The patience of one wait.
//
// See lane_producer.h for the rule. In another pid namespace the recorder's pid says nothing, and
// only its clock and its reading count. Context: T; raw system calls; errno kept.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "session/layout.h"

struct patience {
    uint64_t now_ns;    // monotonic, at the last look
    uint64_t clock_ms;  // the recorder's clock at the last look
    uint64_t still_ms;  // for how long it has not moved
    uint64_t read_pos;  // of our lane, at the last look
    uint64_t unread_ms; // for how long it has not moved
};

void patience_init(struct patience *p,
                   const struct session_header *session,
                   const struct lane_header *lane);

// The recorder is dead, as far as this process can tell: all hooks pass through from now on.
void session_abandon(struct session_header *session);

// To be called after each sleep of at most LANE_WAIT_MS. True if the recorder is dead, or might as
// well be.
bool patience_is_over(struct patience *p,
                      struct session_header *session,
                      const struct lane_header *lane);

// The same at a given moment, not before p->now_ns.
bool patience_is_over_at(struct patience *p,
                         struct session_header *session,
                         const struct lane_header *lane,
                         uint64_t now_ns);
