// SPDX-License-Identifier: MIT
// cancel: lets long work check now and then whether to stop.
//
// The caller who starts the work sets `ask`. Long loops call cancel_step in each turn; it is cheap
// enough for every row. Cancelled work returns the error of `ask`, like any other failure. The
// struct also holds the progress, for display: the number of the current loop, its turns so far,
// and its total. Context: H; one thread at a time.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/err.h"

enum {
    CANCEL_ASKS_EVERY = 256 // steps
};

struct cancel {
    enum err (*ask)(void *context); // ERR_OK: continue
    void *context;
    uint32_t steps;
    uint32_t stage;       // number of loops begun
    uint32_t stage_steps; // value of `steps` when the current loop began
    uint64_t stage_total; // turns of the current loop; 0: unknown
};

// Begin a loop of `total` turns. `cancel` may be NULL.
static inline void cancel_stage(struct cancel *cancel, uint64_t total)
{
    if (cancel != NULL) {
        cancel->stage++;
        cancel->stage_steps = cancel->steps;
        cancel->stage_total = total;
    }
}

// Count one turn of a loop. `cancel` may be NULL: the work is never cancelled.
static inline MUST_USE enum err cancel_step(struct cancel *cancel)
{
    return cancel == NULL || ++cancel->steps % CANCEL_ASKS_EVERY != 0
               ? ERR_OK
               : cancel->ask(cancel->context);
}
