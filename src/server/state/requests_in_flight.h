// SPDX-License-Identifier: MIT
// requests_in_flight: which answers are in the making, how far each is, and what became of the
// others.
//
//   enter (waits for its turn) -> begin (counts) -> pack (compresses) -> leave
//
// Whoever makes an answer writes it up here; `GET /api/v1/work` reads it, so that a page can say
// how far a long answer is. Invariant: begun = finished + abandoned + those on the board that
// count. Context: H; any thread. The mutex protects the slots and the sums; how far an answer is is
// atomic, for it is told by its thread now and then and read by others.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "host/os/cancel.h"
#include "host/text/strbuf.h"

enum {
    ANSWER_BOARD_SLOTS = 64, // as many as there may be connections
};

enum answer_phase {
    ANSWER_WAITS,
    ANSWER_COUNTS,
    ANSWER_PACKS,
};

struct answer_slot {
    const char *target; // borrowed until it leaves; NULL: the slot is free
    uint64_t entered_ms;
    enum answer_phase phase;
    // As in struct cancel. Relaxed: each is right by itself, and a reader only shows them.
    atomic_uint_fast32_t stage;
    atomic_uint_fast64_t done;
    atomic_uint_fast64_t total;
};

struct requests_in_flight {
    pthread_mutex_t mutex;
    struct answer_slot slots[ANSWER_BOARD_SLOTS];
    uint64_t begun;
    uint64_t finished;  // with an answer or a sentence why not
    uint64_t abandoned; // begun, and given up since nobody waited any more
};

#define ANSWER_BOARD_INIT                  \
    {                                      \
        .mutex = PTHREAD_MUTEX_INITIALIZER \
    }

// Somebody asks for `target`. NULL if the board is full: the answer is then made unseen.
struct answer_slot *requests_in_flight_enter(struct requests_in_flight *board, const char *target);

// The next three accept a NULL slot. Its turn has come, and somebody waits for it.
void requests_in_flight_begin(struct requests_in_flight *board, struct answer_slot *slot);

// Its turn is over. `outcome`: ERR_CANCELLED if nobody waited for it, before or after it began.
void requests_in_flight_pack(struct requests_in_flight *board,
                             struct answer_slot *slot,
                             enum err outcome);

// The slot is free from now on.
void requests_in_flight_leave(struct requests_in_flight *board, struct answer_slot *slot);

// How far the work of `slot`, which may be NULL, is.
void answer_slot_tell(struct answer_slot *slot, const struct cancel *cancel);

// The answer of /api/v1/work.
enum err requests_in_flight_write(struct requests_in_flight *board, struct strbuf *out) MUST_USE;

void requests_in_flight_release(struct requests_in_flight *board);
