// SPDX-License-Identifier: MIT
// checkpoint: writes the recording so far to its file, again and again, while recording goes on.
//
// Each checkpoint is a whole file that replaces the one before by renaming, so that whoever opens
// it finds a consistent state, even if everything was killed. It is written by a forked copy of the
// recorder, which has the aggregator as it was at that moment, while the recorder itself goes on
// with the lanes: recorded threads do not wait for a disk. Cost: the interval grows so that a
// checkpoint's work stays below 2 % of a processor's time, and so that there is a copy for a
// quarter of the time at most: on a busy machine or a slow disk, it takes long and costs little. So
// that a file can say truly when it will be replaced, the interval is fixed when its writing
// begins; how long that took counts for the next one. Hence what is found is at most two intervals
// old, of those that it states: one until the next checkpoint begins, and what that one takes, if
// it takes no longer than an interval (a disk that stalls). Death of the recorder: the copy dies
// with it, in the middle of whatever it writes, and leaves nothing behind; the last whole
// checkpoint stays. Failure (disk full): said once, the last good file stays, the next interval
// tries again. Context: H, the recorder's main thread.
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
    uint64_t processor_ms;   // that the latest one took
    pid_t writer;            // 0: none under way
    struct err_info *report; // owned, shared with the writer: what went wrong
    uint64_t written_count;
    uint64_t begun_count;
    uint64_t ended_count; // the latest that is over, written or not; they are numbered from 1
    bool is_wanted;       // as soon as possible
    bool has_failed;      // the latest one did
};

enum checkpoint_event {
    CHECKPOINT_NOTHING,
    CHECKPOINT_WRITTEN,
    CHECKPOINT_FAILED,    // the first failure after a success
    CHECKPOINT_RECOVERED, // the first success after a failure
};

// Intervals grow up to `interval_ms`; 0 means: never. ERR_NO_MEMORY.
enum err checkpoint_init(struct checkpoint *checkpoint, const char *path, uint64_t interval_ms)
    MUST_USE;

// Waits for a writer that is under way.
void checkpoint_release(struct checkpoint *checkpoint);

// Wants one that holds all there is now, whatever the interval. Returns its number.
uint64_t checkpoint_request(struct checkpoint *checkpoint);

bool checkpoint_is_due(const struct checkpoint *checkpoint, uint64_t now_ms);

// Makes a recording of the state at hand and writes it to `path`.
struct checkpoint_source {
    void *context;
    enum err (*write)(void *context, const char *path, struct err_info *info);
};

// Has `source` write in a copy of this process: what the caller does from now on does not matter to
// it, and what it does to its memory is not seen here. Live maps are not in the copy.
void checkpoint_start(struct checkpoint *checkpoint,
                      const struct checkpoint_source *source,
                      uint64_t now_ms);

// Looks whether the writer is done. After CHECKPOINT_FAILED, checkpoint->report says why.
enum checkpoint_event checkpoint_poll(struct checkpoint *checkpoint, uint64_t now_ms);

// How long after one checkpoint's beginning the next may begin, if the interval before was
// `last_ms` and the checkpoint took so much. The first comes after a second at most, and the next
// ones more and more rarely, until the interval is as asked.
uint64_t
checkpoint_interval(uint64_t asked_ms, uint64_t last_ms, uint64_t processor_ms, uint64_t took_ms);

// As checkpoint_poll, but waits.
enum checkpoint_event checkpoint_finish(struct checkpoint *checkpoint, uint64_t now_ms);

// What there is when writing has failed, as the end of a sentence.
const char *checkpoint_what_stays(const struct checkpoint *checkpoint);
