// SPDX-License-Identifier: MIT
// stats_query: a thread queries the recorder for sums, and waits for the response.
//
//   stats_query_ask()    sends the thread's book, then QUERY behind all events of the thread
//   stats_query_await()  sleeps until the recorder has written `answer` of the lane's header
//
// The recorder responds when it has counted all events of all threads up to the query's tick, so
// every event before the query is included. Meanwhile it continues its work, and the thread sleeps.
// A number identifies the query of a response, so late responses to abandoned queries are ignored.
// A lane has one query at a time: a signal handler that queries while its thread waits replaces
// that query, which then has to be asked again.
//
// The wait is bounded in the same way as the wait for room in a lane (lane_producer.h). Context: T;
// ask: under the guard, await: not. errno is kept.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "session/stats_query_values.h"
#include "target/producer/lane_producer.h"

// Send a query, and return its number. `scope` is its scope, if it has one. False: recording has
// ended.
bool stats_query_ask(struct lane_producer *p,
                     enum stats_query_what what,
                     uint32_t scope,
                     uint32_t *number) MUST_USE;

// Open a scope. The recorder sees a thread's own peak only if it sees each event in its turn, so
// it sends each at once while a scope is open (book_follow_scopes).
bool stats_query_open_scope(struct lane_producer *p, uint32_t *scope) MUST_USE;
void stats_query_close_scope(struct lane_producer *p, uint32_t scope);

enum stats_query_end {
    STATS_QUERY_ANSWERED,
    STATS_QUERY_SUPERSEDED, // by a later query: ask again
    STATS_QUERY_OVER,       // no recorder can respond
};

// Wait for the response.
enum stats_query_end stats_query_await(struct session_header *session,
                                       struct lane_header *lane,
                                       uint32_t number,
                                       uint64_t values[static ANSWER_VALUES]) MUST_USE;
