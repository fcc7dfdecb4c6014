// SPDX-License-Identifier: MIT
// cancel: long work that asks now and then whether it is still wanted.
//
// Whoever starts the work fills in `ask`; loops that may be long call cancel_step once a turn,
// which is cheap enough for every row. Work that is stopped returns what `ask` said, as any other
// failure. Context: H; one thread at a time.
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
};

// One turn of a loop. `cancel` may be NULL: nobody ever stops it.
static inline MUST_USE enum err cancel_step(struct cancel *cancel)
{
    return cancel == NULL || ++cancel->steps % CANCEL_ASKS_EVERY != 0
               ? ERR_OK
               : cancel->ask(cancel->context);
}
