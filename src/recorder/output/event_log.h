// SPDX-License-Identifier: MIT
// event_log: writes every event of a run in order to the recording's own file (--events).
//
//   put, put ... --65536 of them, or a second--> a chunk at the end of FILE.events
//   finish: the last snapshot behind them; FILE.events becomes FILE
//
// FILE.events is a recording file from the start, at first without a snapshot. So the log is
// written once, and the log of a killed run is readable. It has the counted events in the order of
// counting: blocks are already paired, and replaying it yields the profile's totals.
// Cost: about 10 bytes of file an event before compression; only the disk limits it.
// Failure: a full disk ends the log, which is reported and counted; the recording continues. The
// log is removed if the disk has no room for its header. It is also removed at the end of the run
// if the disk has no room for the recording beside it.
// Context: H, the recorder's main thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "aggregate/live_blocks/observer.h"
#include "base/err.h"
#include "host/text/strbuf.h"
#include "recording/format/tables.h"
#include "recording/read/event_reader.h"
#include "recording/write/recording_writer.h"

struct event_log {
    int fd;             // owned; -1: none
    struct strbuf path; // FILE.events
    struct recording_writer writer;
    struct rec_event_vec group; // not written yet
    uint64_t written_count;
    uint64_t omitted_count; // after a failure
    uint64_t flush_ms;      // when the present group will be written
    bool is_reported;       // the failure was reported
    bool has_begun;         // the file has its header
    bool has_failed;
    struct err_info trouble; // reason of the failure
};

#define EVENT_LOG_INIT \
    {                  \
        .fd = -1       \
    }

// Check that a log may be written under `name`, the recording's path and ".events": the file does
// not exist, or is the log of a killed recording. ERR_INVALID, ERR_PERMISSION, ERR_IO.
enum err event_log_probe(const char *name, struct err_info *info) MUST_USE;

// Begin the log of the recording that will be at `path`. Replaces an earlier log of that name;
// never follows links. `mode`: of the file, 0: only the owner may read it.
enum err event_log_open(struct event_log *log, const char *path, mode_t mode, struct err_info *info)
    MUST_USE;

// Close the log; an unfinished log stays in its file.
void event_log_close(struct event_log *log);

// Advance to now_ms. Return true if the log has failed just now.
bool event_log_tick(struct event_log *log, uint64_t now_ms);

// Remove the log: all its events are omitted.
void event_log_give_up(struct event_log *log);

// Write the rest, then `recording`, and rename the file to `path`.
enum err event_log_finish(struct event_log *log,
                          const struct recording *recording,
                          const struct recording_write_options *options,
                          const char *path,
                          struct err_info *info) MUST_USE;

// Return an observer that logs each event.
struct observer event_log_observer(struct event_log *log);
