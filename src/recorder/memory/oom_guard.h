// SPDX-License-Identifier: MIT
// oom_guard: decides when a checkpoint is worth its cost because memory is about to run out.
//
//   far --(less left than a sixteenth, or than the growth of a second; or stalls)--> near
//   near --(none of these for ten seconds)--> far
//
// Near the limit a checkpoint is due at once, and then once a second as long as the memory in use
// grows beyond the latest one, so that after an OOM kill the file shows the heap of the last
// second. A program that lives near its limit without growing costs nothing more.
// It looks every 50 ms. While the recorder rests it looks as often as memory that was allocated
// before can be touched, up to a second apart: at 8 GiB a second, what is left lasts until then.
// Where less is left, a checkpoint is due when nothing has been recorded for a second: it has the
// heap as it stays, so a kill costs nothing, and a look a second is enough from then on.
// Context: H; pure. The caller reads the memory and gives the time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/memory/memory_headroom.h"

// Valid when zeroed.
struct oom_guard {
    uint64_t next_ms;      // earliest time of the next look
    uint64_t rest_next_ms; // the same while the recorder rests: no thread of the program allocates
    uint64_t last_ms;      // of the latest look
    uint64_t last_bytes;
    uint64_t near_until_ms;
    uint64_t written_ms; // of the latest checkpoint that it asked for
    uint64_t written_bytes;
    uint64_t events;     // recorded until the latest look
    uint64_t changed_ms; // time of the first look at which there were so many
    uint64_t saved_ms;   // of the latest checkpoint that a rest was worth; 0: none
    bool is_saved;       // such a checkpoint has all of these events
    bool has_looked;
    bool is_near;
};

// Return whether it is time to look. `is_resting`: the recorder rests.
bool oom_guard_is_due(const struct oom_guard *guard, bool is_resting, uint64_t now_ms);

// Take a reading, after so many events. Return whether a checkpoint is due; *just_near is true if
// the limit has become near with this reading.
bool oom_guard_look(struct oom_guard *guard,
                    const struct memory_headroom *headroom,
                    uint64_t events,
                    uint64_t now_ms,
                    bool *just_near);
