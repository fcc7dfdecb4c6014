// SPDX-License-Identifier: MIT
// recorder_liveness: detects during a wait that no recorder reads this session any more.
//
// See lane_producer.h for the rule. The kernel notes the death of the recorder in the session
// (session_clock.h). Where it does not: in another pid namespace the recorder's pid proves nothing,
// and only its clock and its reading count. A thread that may make no system call spins, and counts
// turns. One that is shorter than it counts will do while the clock goes. A recorder whose clock
// rests looks for such threads only now and then (recorder_rest.c): then a turn counts as long as
// it was measured to be before the calls were forbidden. So a recorder that is stopped is given up
// after LANE_PATIENCE_MS of the thread's own processor time at most.
// Context: T; raw system calls; errno kept.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "session/layout.h"

#define LANE_WAIT_MS      50u    // one sleep on a full ring
#define LANE_SUSPECT_MS   250u   // clock stopped so long: check that the recorder process exists
#define LANE_PATIENCE_MS  3000u  // clock stopped so long: dead, whatever its process's state
#define LANE_FORGOTTEN_MS 30000u // lane not read for so long: dead, whatever its clock

struct patience {
    uint64_t now_ns;        // monotonic, at the last check
    uint64_t turns_ns;      // without a system's clock: the time by turns
    uint64_t clock_ms;      // the recorder's clock at the last check
    uint64_t still_ms;      // how long the clock has not moved
    uint64_t read_pos;      // of our lane, at the last check
    uint64_t unread_ms;     // how long read_pos has not moved
    uint32_t pid_namespace; // of this process, as in process_slot
};

// Measure how long a turn takes: before system calls are forbidden. It takes less than 0.2 ms.
void patience_measure_turn(void);

void patience_init(struct patience *p,
                   struct session_header *session,
                   const struct lane_header *lane);

// Without a lane, for a wait of a process of that pid namespace: pass NULL for the lane below.
void patience_init_without_lane(struct patience *p,
                                const struct session_header *session,
                                uint32_t pid_namespace);

// Declare the recorder dead for this process: all hooks pass through from now on.
void session_abandon(struct session_header *session);

// Check the recorder, after each sleep of at most LANE_WAIT_MS. True if the recorder is dead or as
// good as dead.
bool patience_is_over(struct patience *p,
                      struct session_header *session,
                      const struct lane_header *lane);

// Check the recorder at a given moment, not before p->now_ns.
bool patience_is_over_at(struct patience *p,
                         struct session_header *session,
                         const struct lane_header *lane,
                         uint64_t now_ns);
