// SPDX-License-Identifier: MIT
// current_recording: the snapshot that is served now, and its replacement.
//
//   the file was rewritten --served_reload--> a new generation with the same baseline
//   a page put a baseline  --served_set_baseline--> a new generation of the same recording
//
// Reading and building happen outside the mutex, so queries about the old snapshot continue.
// `changing` serializes changes. Lock order: changing, then mutex. Context: H; any thread.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "server/state/snapshot.h"

struct served {
    const char *path; // borrowed; of the recording
    pthread_mutex_t changing;
    pthread_mutex_t mutex;       // protects `snapshot`
    struct snapshot *snapshot;   // owned reference
    struct name_sources sources; // for recordings that are opened later
    struct opening later;        // without progress
    uint64_t refused_identity;   // of a file that could not be read
};

// Open `path`, and `baseline_path` unless it is NULL. Both must outlive `served`, and so must the
// contents of `opening` but its progress. `served` must not move. Debuginfod servers are asked only
// here, since later no user waits at a terminal.
enum err served_init(struct served *served,
                     const char *path,
                     const char *baseline_path,
                     const struct opening *opening,
                     struct err_info *info) MUST_USE;
void served_release(struct served *served);

// The snapshot to answer from, with a reference for the caller.
struct snapshot *served_get(struct served *served);

// Read the file again if it changed. *changed is true if there is a new generation. An unreadable
// file is reported once, and the old snapshot stays.
enum err served_reload(struct served *served, bool *changed, struct err_info *info) MUST_USE;

// Serve the recording at `path`, called `name`, as the baseline. A NULL path removes the baseline.
enum err served_set_baseline(struct served *served,
                             const char *path,
                             const char *name,
                             struct err_info *info) MUST_USE;
