// SPDX-License-Identifier: MIT
// pusher: decides when a profile is made and when it is sent, and keeps the rest in the spool.
//
//   collect each interval -> spool -> send the oldest -> 2xx: removed, and the next one
//                                        '- refused for good (400, 413, ...): its smaller form
//                                        |  is sent, once; if that is refused or there is none:
//                                        |  removed, counted
//                                        '- anything else: kept; wait, twice as long each time
//
// The wait has a random half, so that many hosts do not come back at once, and is at least what the
// collector asks for (Retry-After). A collector that fails halfway may get a profile twice, and
// never half of one.
// Context: H; one thread. Clock and random numbers come from the caller.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/http/http_client.h"
#include "push/push_spool.h"

// The shortest and the longest wait after failures.
enum {
    PUSH_WAIT_MIN_MS = 1000,
    PUSH_WAIT_MAX_MS = 300000,
};

struct pusher {
    uint64_t interval_ms;
    uint64_t collect_ms; // time of the next profile
    uint64_t send_ms;    // earliest time of the next request
    uint64_t wait_ms;    // of the latest failure; 0: the latest request succeeded
    uint64_t sent_count;
    uint64_t smaller_count;  // of these: in their smaller form
    struct push_spool spool; // owned
};

// Sends one entry of the spool, or its smaller form. The error or the status of the answer is the
// outcome. ERR_INVALID: it is not one of ours, or has no smaller form.
typedef enum err
push_send(void *context, struct bytes entry, bool is_smaller, struct http_answer *answer);

// Return whether a profile should be made now. The next one is due after the interval.
bool pusher_is_due(struct pusher *pusher, uint64_t now_ms);

// Send the oldest entry if it is time. `random` decides the wait after a failure. Return whether
// the next one may be sent at once.
bool pusher_send(
    struct pusher *pusher, push_send *send, void *context, uint64_t now_ms, uint64_t random);

// Return the time of the next thing to do.
uint64_t pusher_next_ms(const struct pusher *pusher);
