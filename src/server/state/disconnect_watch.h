// SPDX-License-Identifier: MIT
// disconnect_watch: stops the computation of an answer that no client waits for.
//
// It stops when the client disconnects, when the server is about to end, or at a deadline. Context:
// H; the connection's thread, except for `is_closing`.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/state/requests_in_flight.h"

struct disconnect_watch {
    int client_fd;                 // borrowed; the connection's socket, -1 if unknown
    const atomic_bool *is_closing; // borrowed; set when the server ends
    uint64_t deadline_ms;          // of the monotonic clock
    bool is_late;                  // the deadline passed
    const struct cancel *cancel;   // borrowed; source of the progress; may be NULL
    struct answer_slot *slot;      // borrowed; receives the progress; may be NULL
};

// Callback of struct cancel. ERR_CANCELLED: no client waits, or, with `is_late`, the deadline
// passed.
enum err disconnect_watch_ask(void *watch) MUST_USE;
