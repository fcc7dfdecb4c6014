// SPDX-License-Identifier: MIT
// requests_in_flight: the table of answers in progress, their progress, and counts of finished
// ones.
//
//   enter (waits for its turn) -> begin (counts) -> pack (compresses) -> leave
//
// Each thread that computes an answer has a slot here. `GET /api/v1/work` reads the slots, so that
// a page can show the progress of a long answer. Invariant: begun = finished + abandoned + slots in
// ANSWER_COUNTS.
// Context: H; any thread. The mutex protects the slots and the sums. Progress fields are atomic:
// the slot's thread writes them, others read them.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "host/os/cancel.h"
#include "host/text/strbuf.h"

enum {
    REQUESTS_IN_FLIGHT_MAX = 64, // the maximum of connections
};

enum answer_phase {
    ANSWER_WAITS,
    ANSWER_COUNTS,
    ANSWER_PACKS,
};

struct answer_slot {
    const char *target; // borrowed until the slot is left; NULL: free
    uint64_t entered_ms;
    enum answer_phase phase;
    // As in struct cancel. Relaxed: each is valid by itself, and readers only show them.
    atomic_uint_fast32_t stage;
    atomic_uint_fast64_t done;
    atomic_uint_fast64_t total;
};

struct requests_in_flight {
    pthread_mutex_t mutex;
    struct answer_slot slots[REQUESTS_IN_FLIGHT_MAX];
    uint64_t begun;
    uint64_t finished;  // with an answer or an error
    uint64_t abandoned; // begun, then given up because no client waited
};

#define REQUESTS_IN_FLIGHT_INIT            \
    {                                      \
        .mutex = PTHREAD_MUTEX_INITIALIZER \
    }

// Enter a request for `target`. Return NULL if the table is full; the request is then not shown.
struct answer_slot *requests_in_flight_enter(struct requests_in_flight *requests,
                                             const char *target);

// Its turn has come, and the client still waits. A NULL slot is accepted here and in the next two.
void requests_in_flight_begin(struct requests_in_flight *requests, struct answer_slot *slot);

// Its turn is over. `outcome`: ERR_CANCELLED if no client waited, before or after it began.
void requests_in_flight_pack(struct requests_in_flight *requests,
                             struct answer_slot *slot,
                             enum err outcome);

// Free the slot.
void requests_in_flight_leave(struct requests_in_flight *requests, struct answer_slot *slot);

// Copy the progress of the computation to `slot`, which may be NULL.
void answer_slot_note(struct answer_slot *slot, const struct cancel *cancel);

// Append the answer of /api/v1/work.
enum err requests_in_flight_write(struct requests_in_flight *requests, struct strbuf *out) MUST_USE;

void requests_in_flight_release(struct requests_in_flight *requests);
