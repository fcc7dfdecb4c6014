// SPDX-License-Identifier: MIT
#include "server/state/current_recording.h"

#include <sys/stat.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/os/mutex.h"

enum err served_init(struct served *served,
                     const char *path,
                     const char *baseline_path,
                     const struct opening *opening,
                     struct err_info *info)
{
    CLEANUP(opened_unrefp) struct opened *new = NULL;
    CLEANUP(opened_unrefp) struct opened *old = NULL;
    *served = (struct served){
        .path = path, .changing = PTHREAD_MUTEX_INITIALIZER, .mutex = PTHREAD_MUTEX_INITIALIZER};
    TRY(opened_new(path, path, opening, &new, info));
    if (baseline_path != NULL) {
        TRY(opened_new(baseline_path, baseline_path, opening, &old, info));
    }
    served->later = (struct opening){.rules = opening->rules};
    if (opening->sources != NULL) {
        served->sources = *opening->sources;
        served->sources.servers = NULL;
        served->later.sources = &served->sources;
    }
    TRY(snapshot_new(1, new, old, &served->snapshot));
    return ERR_OK;
}

void served_release(struct served *served)
{
    snapshot_unref(served->snapshot);
    served->snapshot = NULL;
}

struct snapshot *served_get(struct served *served)
{
    mutex_lock(&served->mutex);
    struct snapshot *snapshot = snapshot_ref(served->snapshot);
    mutex_unlock(&served->mutex);
    return snapshot;
}

// Serve a new snapshot. The caller holds `changing`.
static MUST_USE enum err put_snapshot(struct served *served, struct opened *new, struct opened *old)
{
    struct snapshot *snapshot;
    uint64_t generation = served->snapshot->generation + 1;
    TRY(snapshot_new(generation, new, old, &snapshot));
    mutex_lock(&served->mutex);
    struct snapshot *before = served->snapshot;
    served->snapshot = snapshot;
    mutex_unlock(&served->mutex);
    snapshot_unref(before);
    return ERR_OK;
}

// Read the recording again if its file changed. The caller holds `changing`.
static MUST_USE enum err
reload_recordings(struct served *served, bool *changed, struct err_info *info)
{
    struct stat status;
    *changed = false;
    if (stat(served->path, &status) != 0) {
        return ERR_OK; // renamed or removed: the old snapshot stays valid
    }
    uint64_t identity = file_identity(&status);
    struct opened *const *sides = served->snapshot->sides;
    if (identity == sides[SIDE_NEW]->identity || identity == served->refused_identity) {
        return ERR_OK;
    }
    served->refused_identity = identity; // reset below if it can be read
    CLEANUP(opened_unrefp) struct opened *opened = NULL;
    TRY(opened_new(served->path, served->path, &served->later, &opened, info));
    TRY(put_snapshot(served, opened, sides[SIDE_OLD]));
    served->refused_identity = 0;
    *changed = true;
    return ERR_OK;
}

enum err served_reload(struct served *served, bool *changed, struct err_info *info)
{
    mutex_lock(&served->changing);
    enum err problem = reload_recordings(served, changed, info);
    mutex_unlock(&served->changing);
    return problem;
}

enum err served_set_baseline(struct served *served,
                             const char *path,
                             const char *name,
                             struct err_info *info)
{
    CLEANUP(opened_unrefp) struct opened *opened = NULL;
    if (path != NULL) {
        const struct opening opening = {.rules = served->later.rules};
        TRY(opened_new(path, name, &opening, &opened, info));
    }
    mutex_lock(&served->changing);
    enum err problem = put_snapshot(served, served->snapshot->sides[SIDE_NEW], opened);
    mutex_unlock(&served->changing);
    return problem;
}
