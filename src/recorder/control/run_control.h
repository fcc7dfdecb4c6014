// SPDX-License-Identifier: MIT
// run_control: when to record (from the start or later, with stops, for a limited time), and the
// user's marks on the time line.
//
//   NOTHING --start--> ALL * <--start / stop--> FREES        --duration over--> the recording ends
//   (--delay, --start-paused)     * or SAMPLE (--sample, --overflow=sample, lack of memory)
//
// Hooks read session_header.recording. Before the first start there are no recorded blocks, so
// hooks pass everything through. After a stop they pass allocations through and still report frees,
// so that freed blocks do not count as live. A block that is reallocated meanwhile counts as freed.
//
// Every start and stop is also a mark; a recording that is never stopped has no such marks.
// Context: H, the recorder's main thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregate/aggregator.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"
#include "session/layout.h"

struct run_control_options {
    uint64_t delay_ms;    // time of the first automatic start; 0: at once
    uint64_t duration_ms; // length of the recording from its first start; 0: until the program ends
    bool is_paused;       // only a request starts it
};

struct run_control {
    struct session_header *session; // borrowed
    struct aggregator *aggregator;  // borrowed; has the marks
    struct run_control_options options;
    bool samples; // hooks choose the blocks that they record
    enum session_recording recording;
    uint64_t started_ms; // the first start
};

// Initialize, before any process joins the session. ERR_NO_MEMORY.
enum err run_control_init(struct run_control *control,
                          const struct run_control_options *options,
                          struct session_header *session,
                          struct aggregator *aggregator) MUST_USE;

// Return whether everything was recorded so far: recording began at once and never stopped.
bool run_control_is_whole(const struct run_control *control);

// Start or stop recording. ERR_INVALID with a sentence if that is done already.
enum err run_control_start(struct run_control *control, uint64_t now_ms, struct err_info *info)
    MUST_USE;
// `clock` is read again after the hooks have been notified.
enum err run_control_stop(struct run_control *control,
                          uint64_t (*clock)(void *context),
                          void *context,
                          struct err_info *info) MUST_USE;

// From now on let hooks choose the blocks that they record. Return whether that is new.
bool run_control_sample(struct run_control *control);

// Note that events between two moments may be missing, because threads took the recorder for dead:
// as a stop and a start.
enum err run_control_note_gap(struct run_control *control, uint64_t from_ms, uint64_t to_ms)
    MUST_USE;

// Add a mark of the user. ERR_LIMIT, ERR_INVALID (no text, or too long) with a sentence.
enum err run_control_mark(struct run_control *control,
                          uint64_t now_ms,
                          const char *text,
                          struct err_info *info) MUST_USE;

// Advance to now_ms: start if that is due.
enum err run_control_tick(struct run_control *control, uint64_t now_ms) MUST_USE;

// Return whether the requested duration is over.
bool run_control_is_over(const struct run_control *control, uint64_t now_ms);

// Return when the next start or the end is due; UINT64_MAX: never.
uint64_t run_control_next_ms(const struct run_control *control);

static inline bool run_control_has_started(const struct run_control *control)
{
    return control->recording != SESSION_RECORD_NOTHING;
}
