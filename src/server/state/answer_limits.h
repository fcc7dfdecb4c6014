// SPDX-License-Identifier: MIT
// answer_limits: when the computation of an answer begins, and when it stops before its end.
//
// It begins when one of the turns that a semaphore counts is free. It stops when the client
// disconnects, when the server is about to end, or at a deadline. Context: H; the connection's
// thread, except for `is_closing`.
#pragma once

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct disconnect_watch {
    int client_fd;                 // borrowed; the connection's socket, -1 if unknown
    const atomic_bool *is_closing; // borrowed; set when the server ends
    uint64_t deadline_ms;          // of the monotonic clock
    bool is_late;                  // the deadline passed
};

// Callback of struct cancel. ERR_CANCELLED: no client waits, or, with `is_late`, the deadline
// passed.
enum err disconnect_watch_ask(void *watch) MUST_USE;

// Take a turn; false if none is free within `patience_ms` of the monotonic clock, which a step of
// the wall clock does not change. Give it back with sem_post.
bool turns_take(sem_t *turns, uint64_t patience_ms);
