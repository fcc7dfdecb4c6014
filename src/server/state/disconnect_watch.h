// SPDX-License-Identifier: MIT
// disconnect_watch: whether anyone still waits for an answer that is in the making.
//
// Nobody does once the client has hung up or the server is to end; and no answer may take longer
// than its time. Context: H; the connection's thread, but for `is_closing`.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/state/requests_in_flight.h"

struct disconnect_watch {
    int client_fd;                 // borrowed; the connection, -1 if it is not known
    const atomic_bool *is_closing; // borrowed; set when the server ends
    uint64_t deadline_ms;          // of the monotonic clock
    bool is_late;                  // why it said to stop
    const struct cancel *cancel;   // borrowed; how far the work is; NULL: nobody wants to know
    struct answer_slot *slot;      // borrowed; where that is told; may be NULL
};

// As struct cancel wants it. ERR_CANCELLED: nobody waits, or, with `is_late`, it took too long.
enum err disconnect_watch_ask(void *watch) MUST_USE;
