// SPDX-License-Identifier: MIT
// current_recording: the snapshot that is served now, and the ways in which it changes.
//
//   the file was rewritten --served_reload--> a new generation of the same baseline
//   a page put a baseline  --served_set_baseline--> a new generation of the same recording
//
// Reading and building happen outside the lock, so that questions about the old snapshot go on.
// Only one change is made at a time (`changing`). Lock order: changing, then mutex. Context: H; any
// thread.
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
    struct name_sources sources; // for what is opened later
    bool has_sources;
    uint64_t refused_identity; // of a state of the file that could not be read
};

// Opens `path`, and `baseline_path` unless it is NULL; both must outlive it, and so must what
// `sources` point to, which may be NULL. Their servers are asked only here: nobody waits at a
// terminal later.
enum err served_init(struct served *served,
                     const char *path,
                     const char *baseline_path,
                     const struct name_sources *sources,
                     struct err_info *info) MUST_USE;
void served_release(struct served *served);

// The snapshot to answer from, with a reference for the caller.
struct snapshot *served_get(struct served *served);

// Reads the file again if it is not the one that is served. *changed says whether there is a new
// generation. A file that cannot be read is an error once, and what was served stays.
enum err served_reload(struct served *served, bool *changed, struct err_info *info) MUST_USE;

// Serves the recording at `path`, called `name`, as baseline; none if path is NULL.
enum err served_set_baseline(struct served *served,
                             const char *path,
                             const char *name,
                             struct err_info *info) MUST_USE;
