// SPDX-License-Identifier: MIT
// inquiry_values: what a thread may ask the recorder for, and the values of an answer.
//
// Context: T asks (target/preload/process/inquiry.h), the recorder answers.
#pragma once

#include "session/layout.h"

enum inquiry_what {
    INQUIRY_PROCESS = 0,    // sums
    INQUIRY_THREAD = 1,     // sums
    INQUIRY_PEAK_BEGIN = 2, // sums of the thread; starts to follow its peak in that scope
    INQUIRY_PEAK = 3,       // the peak in that scope so far
    INQUIRY_PEAK_END = 4,   // stops following it; not answered
};

enum inquiry_value {
    ANSWER_ALLOCATIONS,
    ANSWER_ALLOCATED_BYTES,
    ANSWER_FREES,
    ANSWER_FREED_BYTES,
    ANSWER_TEMPORARY,
    ANSWER_PEAK_BYTES, // of INQUIRY_PEAK; else 0
    ANSWER_VALUES
};
_Static_assert(ANSWER_VALUES <= LANE_ANSWER_VALUES, "a lane has room for an answer");
