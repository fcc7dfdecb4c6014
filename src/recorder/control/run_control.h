// SPDX-License-Identifier: MIT
// run_control: when a recording records: from the start or later, with stops, for a while; and the
// marks that people set on its time line.
//
//   NOTHING --start--> ALL * <--start / stop--> FREES        --duration over--> the recording ends
//   (--delay, --start-paused)     * or SAMPLE, with --overflow=sample
//
// The word that hooks look at is session_header.recording. Before the first start there is nothing
// to follow, so hooks pass everything through. After a stop they pass allocations through and go on
// to report what is freed, so that no block that was recorded seems to live for ever; a block that
// is reallocated meanwhile counts as freed.
//
// Every start and stop is a mark, too; a recording that is never stopped has none of them.
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
    uint64_t delay_ms;    // the first start comes by itself after this; 0: at once
    uint64_t duration_ms; // the recording ends so long after its first start; 0: with the program
    bool is_paused;       // the first start comes by request only
};

struct run_control {
    struct session_header *session; // borrowed
    struct aggregator *aggregator;  // borrowed; has the marks
    struct run_control_options options;
    enum session_recording recording;
    uint64_t started_ms; // the first start
};

// Before anybody joins the session. ERR_NO_MEMORY.
enum err run_control_init(struct run_control *control,
                          const struct run_control_options *options,
                          struct session_header *session,
                          struct aggregator *aggregator) MUST_USE;

// Whether everything was recorded so far: it began at once and was never stopped.
bool run_control_is_whole(const struct run_control *control);

// Starts or stops. Doing what is done already is ERR_INVALID with a sentence.
enum err run_control_start(struct run_control *control, uint64_t now_ms, struct err_info *info)
    MUST_USE;
// `clock` is asked again once the hooks have been told.
enum err run_control_stop(struct run_control *control,
                          uint64_t (*clock)(void *context),
                          void *context,
                          struct err_info *info) MUST_USE;

// A person's mark. ERR_LIMIT, ERR_INVALID (no text, or too long) with a sentence.
enum err run_control_mark(struct run_control *control,
                          uint64_t now_ms,
                          const char *text,
                          struct err_info *info) MUST_USE;

// Time has come to now_ms: starts if that is due.
enum err run_control_tick(struct run_control *control, uint64_t now_ms) MUST_USE;

// Whether the time that was asked for is over.
bool run_control_is_over(const struct run_control *control, uint64_t now_ms);

static inline bool run_control_has_started(const struct run_control *control)
{
    return control->recording != SESSION_RECORD_NOTHING;
}
