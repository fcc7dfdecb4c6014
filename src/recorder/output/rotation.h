// SPDX-License-Identifier: MIT
// rotation: keeps states of the recording under names with a time, and bounds the disk that they
// take.
//
//   server.cairn --link(2)--> server.20261123T161009Z.cairn     each hour, or by the size of the
//                                                               file; at the end, on request
//
// A recording is cumulative: each kept file has everything since the start, so nothing is lost
// between two of them, and `cairn diff` of two shows what happened in between. A checkpoint
// replaces the recording's file by renaming, so a second link to it stays as it was, and keeping it
// copies nothing.
//
// The names carry the bounds: files older than `keep_ms`, by the time in their names, are removed,
// and then the oldest until all files take at most `max_bytes` together. A clock may be wrong, so a
// pause between two files counts at most a sixteenth of keep_ms for their age: a clock that jumps
// removes nothing by age until so much time has passed in small steps, and the newest 16 files stay
// in any case.
//
//   kept    1h 2h 3h        (the clock jumps by 30 days)        4h 5h ...
//   age                     at most keep_ms / 16
//
// Only files with such a
// name beside the recording are ever removed; earlier runs of the same output count. The recording
// itself is never removed.
// Context: H, the recorder's main thread. The caller gives the time. Failure: a state that could
// not be kept is reported, and the next one is tried.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/text/strbuf.h"

struct rotation_options {
    uint64_t every_ms;    // 0: not by time
    uint64_t every_bytes; // growth of the file since the latest kept state; 0: not by size
    bool keeps_last;      // only the state at the end
    uint64_t keep_ms;     // 0: forever
    uint64_t max_bytes;   // of the recording and all kept files; 0: unlimited
};

// Return whether states are kept, the last one among them, not only on request.
static inline bool rotation_is_wanted(const struct rotation_options *options)
{
    return options->every_ms != 0 || options->every_bytes != 0 || options->keeps_last;
}

struct rotation {
    struct rotation_options options;
    const char *path; // borrowed; of the recording
    uint64_t next_ms; // time of the next one, if options.every_ms is not 0
    // Numbers of the first and the last checkpoint to keep; 0: none. While one is written, the next
    // one may be requested, too.
    uint64_t first_awaited;
    uint64_t last_awaited;
    struct strbuf kept;  // owned; path of the latest kept file
    uint64_t kept_bytes; // its size; 0: none of this run
    bool has_failed;     // the latest one could not be kept
};

// Initialize. If there is a file at `path` that is not kept, it is the last state of a run that was
// killed: keep it. ERR_IO with a sentence: it cannot be kept; rotation works nevertheless.
enum err rotation_init(struct rotation *rotation,
                       const struct rotation_options *options,
                       const char *path,
                       struct err_info *info) MUST_USE;
void rotation_release(struct rotation *rotation);

// Await checkpoint `number`: that of the latest request, or the next one.
void rotation_await(struct rotation *rotation, uint64_t number);

// Return whether the state of checkpoint `ended` is to be kept: it, or one before it, is awaited.
bool rotation_is_awaited(const struct rotation *rotation, uint64_t ended);

// Await no checkpoint up to `ended` any more.
void rotation_settle(struct rotation *rotation, uint64_t ended);

// Return whether a state should be kept now: another checkpoint is to be awaited. It is due again
// after the next interval. While one is awaited that has not ended (of `ended`), none is due: if
// checkpoints take longer than the interval, there would always be a later one to wait for.
bool rotation_is_due(struct rotation *rotation, uint64_t ended, uint64_t now_ms);

// Return whether the file has grown by options.every_bytes since the latest kept state.
bool rotation_has_grown(const struct rotation *rotation);

// Keep the present file under the name of `unix_ns`, and remove what the bounds say. ERR_IO with a
// sentence, ERR_NO_MEMORY.
enum err rotation_keep(struct rotation *rotation, uint64_t unix_ns, struct err_info *info) MUST_USE;
