// SPDX-License-Identifier: MIT
// plain_modules: the files in which no allocator was found, so that attach_late need not read them
// again. All processes of a recording share them; a file is known by a number (attach_plan.c).
//
// Zeroed is valid. Context: H, any thread.
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "host/containers/map_u64.h"
#include "host/os/mutex.h"

struct plain_modules {
    pthread_mutex_t lock; // protects `files`
    struct map_u64 files;
};

static inline bool plain_modules_has(struct plain_modules *plain, uint64_t file)
{
    mutex_lock(&plain->lock);
    const bool has = map_u64_find(&plain->files, file) != NULL;
    mutex_unlock(&plain->lock);
    return has;
}

static inline MUST_USE enum err plain_modules_add(struct plain_modules *plain, uint64_t file)
{
    mutex_lock(&plain->lock);
    const enum err err = map_u64_put(&plain->files, file, 1);
    mutex_unlock(&plain->lock);
    return err;
}
