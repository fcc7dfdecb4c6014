// SPDX-License-Identifier: MIT
// cancel: long work that asks now and then whether it is still wanted.
//
// Whoever starts the work fills in `ask`; loops that may be long call cancel_step once a turn,
// which is cheap enough for every row. Work that is stopped returns what `ask` said, as any other
// failure. What is known of how far the work is stands there too, for whoever tells a person: the
// loop that runs, how many turns it has done, and of how many. Context: H; one thread at a time.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/err.h"

enum {
    CANCEL_ASKS_EVERY = 256 // steps
};

struct cancel {
    enum err (*ask)(void *context); // ERR_OK: go on
    void *context;
    uint32_t steps;
    uint32_t stage;       // loops that were begun
    uint32_t stage_steps; // `steps` when the last of them was
    uint64_t stage_total; // its turns; 0: not known
};

// A loop of `total` turns begins. `cancel` may be NULL.
static inline void cancel_stage(struct cancel *cancel, uint64_t total)
{
    if (cancel != NULL) {
        cancel->stage++;
        cancel->stage_steps = cancel->steps;
        cancel->stage_total = total;
    }
}

// One turn of a loop. `cancel` may be NULL: nobody ever stops it.
static inline MUST_USE enum err cancel_step(struct cancel *cancel)
{
    return cancel == NULL || ++cancel->steps % CANCEL_ASKS_EVERY != 0
               ? ERR_OK
               : cancel->ask(cancel->context);
}
