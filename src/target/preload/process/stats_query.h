// SPDX-License-Identifier: MIT
// stats_query: a thread asks the recorder for sums, and waits for the answer.
//
//   stats_query_ask()    sends the nursery's blocks, then QUESTION behind all events of the thread
//   stats_query_await()  sleeps until the recorder has written `answer` of the lane's header
//
// The recorder answers when it has counted everything of the question's tick and before, of all
// threads, so that what happened before the question is in the answer, whoever did it. It goes on
// with its work meanwhile; the thread has nothing else to do. A number tells which question was
// answered: one that was given up may be answered late, over which nobody stumbles. A lane has one
// question at a time: a signal handler that asks while its thread waits puts its own in the place
// of that one, which then has to be asked anew.
//
// Waiting has an end as that for room in a lane has (lane_producer.h). Context: T; ask: under the
// guard, await: not. errno is kept.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "session/stats_query_values.h"
#include "target/producer/lane_producer.h"

// Asks, and gives the question's number; `scope`, if it is of one. False: recording is over.
bool stats_query_ask(struct lane_producer *p,
                     enum stats_query_what what,
                     uint32_t scope,
                     uint32_t *number) MUST_USE;

// The recorder sees a thread's own peak only if it sees each event in its turn: from the first of
// these to the last of those nothing is held (nursery.h).
bool stats_query_open_scope(struct lane_producer *p, uint32_t *scope) MUST_USE;
void stats_query_close_scope(struct lane_producer *p, uint32_t scope);

enum stats_query_end {
    STATS_QUERY_ANSWERED,
    STATS_QUERY_SUPERSEDED, // by a later question: ask again
    STATS_QUERY_OVER,       // there is nobody to answer
};

// Waits for the answer.
enum stats_query_end stats_query_await(struct session_header *session,
                                       struct lane_header *lane,
                                       uint32_t number,
                                       uint64_t values[static ANSWER_VALUES]) MUST_USE;
