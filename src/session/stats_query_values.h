// SPDX-License-Identifier: MIT
// stats_query_values: the queries of a thread to the recorder, and the values of a response.
//
// Context: T queries (target/preload/process/stats_query.h), the recorder responds.
#pragma once

#include "session/layout.h"

enum stats_query_what {
    STATS_QUERY_PROCESS = 0,    // sums
    STATS_QUERY_THREAD = 1,     // sums
    STATS_QUERY_PEAK_BEGIN = 2, // sums of the thread; starts to follow its peak in that scope
    STATS_QUERY_PEAK = 3,       // the peak in that scope so far
    STATS_QUERY_PEAK_END = 4,   // stops following it; without a response
};

enum stats_query_value {
    ANSWER_ALLOCATIONS,
    ANSWER_ALLOCATED_BYTES,
    ANSWER_FREES,
    ANSWER_FREED_BYTES,
    ANSWER_TEMPORARY,
    ANSWER_PEAK_BYTES, // for STATS_QUERY_PEAK; else 0
    ANSWER_VALUES
};
_Static_assert(ANSWER_VALUES <= LANE_ANSWER_VALUES, "a lane has room for an answer");
