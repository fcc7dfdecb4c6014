// SPDX-License-Identifier: MIT
// event_log: every event of a run, one after the other, in the recording's own file (--events).
//
//   put, put ... --65536 of them, or a second--> a chunk at the end of FILE.events
//   finish: the last snapshot behind them; FILE.events becomes FILE
//
// FILE.events is a recording file from the start, without a snapshot as yet. So the log is written
// once, and one of a run that was killed can be read. What is logged is what was counted, in that
// order: blocks are paired already, and whoever replays it gets the profile's totals.
// Cost: about 10 bytes of file an event before compression; it has no bound but the disk's.
// Failure: a disk that is full ends the log, which is said and counted; the recording goes on. If
// at the end there is no room behind the log, the log gives way to the recording. Context: H, the
// recorder's main thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "aggregate/observer.h"
#include "base/err.h"
#include "host/text/strbuf.h"
#include "recording/format/tables.h"
#include "recording/read/event_reader.h"
#include "recording/write/recording_writer.h"

struct event_log {
    int fd;             // owned; -1: there is none
    struct strbuf path; // FILE.events
    struct recording_writer writer;
    struct rec_event_vec group; // not written yet
    uint64_t written_count;
    uint64_t left_out_count; // after a failure
    uint64_t flush_ms;       // when what there is will be written
    bool is_told;            // that it has failed
    bool has_failed;
    struct err_info trouble; // why
};

#define EVENT_LOG_INIT \
    {                  \
        .fd = -1       \
    }

// Whether a log may be written under `name`, the recording's and ".events": nothing is there, or
// the log that a killed recording left. ERR_INVALID, ERR_PERMISSION, ERR_IO.
enum err event_log_probe(const char *name, struct err_info *info) MUST_USE;

// Begins the log of the recording that will be at `path`. An earlier log of that name is replaced;
// links are not followed. `mode`: of the file, 0: the owner's alone.
enum err event_log_open(struct event_log *log, const char *path, mode_t mode, struct err_info *info)
    MUST_USE;

// Closes it; a log that was not finished stays in its file.
void event_log_close(struct event_log *log);

// ERR_NO_MEMORY.
enum err event_log_put(struct event_log *log, const struct rec_event *event) MUST_USE;

// Time has come to now_ms. True: the log has failed just now.
bool event_log_tick(struct event_log *log, uint64_t now_ms);

// Removes the log: all of it is left out.
void event_log_give_up(struct event_log *log);

// Writes the rest, then `recording`, and gives the file its name `path`.
enum err event_log_finish(struct event_log *log,
                          const struct recording *recording,
                          const struct recording_write_options *options,
                          const char *path,
                          struct err_info *info) MUST_USE;

// Logs each event.
struct observer event_log_observer(struct event_log *log);
