// SPDX-License-Identifier: MIT
// cancel: lets long work check now and then whether to stop.
//
// The caller who starts the work sets `ask`. Long loops call cancel_step in each turn; it is cheap
// enough for every row. Cancelled work returns the error of `ask`, like any other failure.
// Context: H; one thread at a time.
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
};

// Count one turn of a loop. `cancel` may be NULL: the work is never cancelled.
static inline MUST_USE enum err cancel_step(struct cancel *cancel)
{
    return cancel == NULL || ++cancel->steps % CANCEL_ASKS_EVERY != 0
               ? ERR_OK
               : cancel->ask(cancel->context);
}
