// SPDX-License-Identifier: MIT
// checkpoint: writes complete recordings to the file while recording continues.
//
// Each checkpoint is a whole file that replaces the previous one by renaming. So a reader always
// finds a consistent state, even after a kill. A forked copy of the recorder writes it from the
// aggregator at that moment, while the recorder keeps draining the lanes: recorded threads never
// wait for a disk.
// Cost: the interval grows until the work of checkpoints stays below 2 % of a processor, and a copy
// exists for at most a quarter of the time: on a busy machine or a slow disk a checkpoint takes
// long and costs little. What one will cost is expected from what there is to write, so the first
// one waits, too. The interval is fixed when writing begins, so that the file can state when
// it will be replaced; the duration counts for the next interval. So a file is at most two of its
// stated intervals old: one until the next checkpoint begins, and the duration of that, unless a
// stalled disk makes it longer than an interval. Death of the recorder: the copy dies with it, even
// in the middle of a write, and leaves nothing behind; the last whole checkpoint stays.
// Failure (disk full, no more processes): reported once; the last good file stays; the next
// interval tries again.
// Context: H, the recorder's main thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct checkpoint {
    const char *path;     // borrowed
    uint64_t asked_ms;    // shortest interval
    uint64_t interval_ms; // from the next checkpoint to the one after it
    uint64_t next_ms;
    uint64_t started_ms;
    uint64_t processor_ms;   // of the latest one
    pid_t writer;            // 0: none at present; -1: it could not be started
    struct err_info *report; // owned, shared with the writer: the reason of its failure
    uint64_t written_count;
    uint64_t begun_count;
    uint64_t ended_count; // number of the latest finished one, written or not; from 1
    bool is_wanted;       // as soon as possible
    uint64_t wanted_ms;   // time of the request
    bool has_failed;      // the latest one failed
};

enum {
    CHECKPOINT_GRACE_MS = 10000, // for a writer when the recorder ends, whose own file is newer
};

enum checkpoint_event {
    CHECKPOINT_NOTHING,
    CHECKPOINT_WRITTEN,
    CHECKPOINT_FAILED,    // the first failure after a success
    CHECKPOINT_RECOVERED, // the first success after a failure
};

// Initialize. Intervals grow up to `interval_ms`; 0: never write. ERR_NO_MEMORY.
enum err checkpoint_init(struct checkpoint *checkpoint, const char *path, uint64_t interval_ms)
    MUST_USE;

// Wait for the present writer, as checkpoint_finish does with CHECKPOINT_GRACE_MS.
void checkpoint_release(struct checkpoint *checkpoint);

// Request a checkpoint of the state at now_ms, regardless of the interval. Return its number.
uint64_t checkpoint_request(struct checkpoint *checkpoint, uint64_t now_ms);

// Note that a checkpoint would take so much processor time now. A later first checkpoint is due
// then, after 10 s at most, and the interval that the next one states is longer.
void checkpoint_expect(struct checkpoint *checkpoint, uint64_t processor_ms);

// `read_ms`: what threads did before has been read from them. A requested checkpoint waits for its
// time, because threads keep their latest blocks to themselves for a moment.
bool checkpoint_is_due(const struct checkpoint *checkpoint, uint64_t now_ms, uint64_t read_ms);

// Make a recording of the present state and writes it to `path`.
struct checkpoint_source {
    void *context;
    enum err (*write)(void *context, const char *path, struct err_info *info);
};

// Run `source` in a forked copy of this process: later changes of the caller do not affect it, and
// its changes do not affect the caller.
void checkpoint_start(struct checkpoint *checkpoint,
                      const struct checkpoint_source *source,
                      uint64_t now_ms);

// Check whether the writer is done. After CHECKPOINT_FAILED, checkpoint->report has the reason.
enum checkpoint_event checkpoint_poll(struct checkpoint *checkpoint, uint64_t now_ms);

// Return the time from one checkpoint's start to the next, given the previous interval and the
// duration of the checkpoint. The first comes after a second at most; intervals then grow up to the
// requested one.
uint64_t
checkpoint_interval(uint64_t asked_ms, uint64_t last_ms, uint64_t processor_ms, uint64_t took_ms);

// Wait for the writer, at most `grace_ms`, then kill it: a writer that hangs must not keep the
// recorder from its own file. Then do as checkpoint_poll. Before Linux 5.3 the wait has no limit.
enum checkpoint_event
checkpoint_finish(struct checkpoint *checkpoint, int grace_ms, uint64_t now_ms);

// Return the end of a sentence that says what the file has when writing has failed.
const char *checkpoint_what_stays(const struct checkpoint *checkpoint);
