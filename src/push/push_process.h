// SPDX-License-Identifier: MIT
// push_process: sends profiles to a collector while a program is recorded (`record --push`).
//
// A process beside the recorder (side_process.h) reads the checkpoints that the recorder writes
// anyway. When the recorder ends, it sends the last profile and what waits, for at most the time
// limit; the rest stays in the folder of the spool, or is lost without one.
// Context: H. push_process_start forks, so the caller must have one thread.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/os/side_process.h"
#include "profile/model/profile.h"
#include "push/push_limits.h"

struct push_options {
    const char *url;         // of the collector; NULL: push nothing
    const char *credentials; // http_client.h; NULL: none
    const char *ca_file;     // http_client.h; NULL: those of the system
    const char *spool;       // folder; NULL: memory
    uint64_t spool_max_bytes;
    uint64_t interval_ms;
    uint64_t timeout_ms; // of a request, and of all requests at the end
    struct push_limits limits;
    uint64_t memory_max_bytes; // of its process; 0: unlimited
    const char *const *labels; // push_labels.h
    size_t label_count;
};

// Shared by both processes.
struct push_report {
    _Atomic uint64_t sent_count;    // profiles
    _Atomic uint64_t lost_count;    // dropped for the spool's bound, refused, or lost at the end
    _Atomic uint64_t waiting_count; // in the spool
    _Atomic uint64_t reduced_count; // in which stacks are added up for the collector's limits
    struct err_info failure;        // the latest one; valid once the process has ended
};

struct push_process {
    struct side_process side;   // tell it the path of the recording
    struct push_report *report; // owned; NULL: not started
};

// Start. ERR_UNSUPPORTED: libcurl is not installed; other errors of the spool and of fork. Each
// comes with a sentence.
enum err push_process_start(const struct push_options *options,
                            const struct name_sources *names,
                            struct push_process *out,
                            struct err_info *info) MUST_USE;

// Let it send what is left, and end it. Accepts a zeroed one. Return whether it ran until now.
bool push_process_stop(struct push_process *push, const struct push_options *options);
void push_process_release(struct push_process *push);
