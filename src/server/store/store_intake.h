// SPDX-License-Identifier: MIT
// store_intake: collects the recordings that clients send, and adds them to a store together.
//
//   connections: rows --> [ waiting ] -- after COLLECT_MS, or INTAKE_MAX of them --> one store_add
//                <-- its result -----------------------------------------------------'
//
// A client gets its answer when its recording is in the store, so it knows what to send again. One
// thread owns the store's handle; it also applies the policy, each hour. A store that fails is
// opened anew for the next batch.
// Context: H; store_intake_add in any thread. The number of connections bounds what waits.
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "base/err.h"
#include "store/store.h"

enum {
    INTAKE_MAX = 64, // recordings of one batch
};

struct intake_item; // of store_intake.c

struct store_intake {
    const char *place;                     // borrowed; of the store, NULL: the user's own
    const struct retention_policy *policy; // borrowed; NULL: nothing is removed
    pthread_mutex_t mutex;                 // protects what follows
    pthread_cond_t changed;
    struct intake_item *waiting; // the newest first
    size_t waiting_count;
    uint64_t batches; // that were added, for tests and /metrics
    bool is_over;
    pthread_t thread;
    bool has_thread;
};

// Start the thread. `intake` must not move. ERR_IO.
enum err store_intake_start(struct store_intake *intake, struct err_info *info) MUST_USE;

// Add what waits, and end the thread. Accepts one without a thread.
void store_intake_stop(struct store_intake *intake);

// Add a recording, and wait until the store has it. Errors: those of the store; ERR_CANCELLED: the
// server ends.
enum err store_intake_add(struct store_intake *intake,
                          const struct recording_rows *rows,
                          bool *out_is_new,
                          struct err_info *info) MUST_USE;
