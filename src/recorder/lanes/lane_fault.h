// SPDX-License-Identifier: MIT
// lane_fault: which rule a lane broke, and the words that broke it, for the log.
//
// The recording has only the number of such lanes. Whether the program overwrote one, or a process
// and the recorder disagree, is seen by the record.
// Context: H, the recorder's main thread; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/text/strbuf.h"

#define LANE_FAULT_WORDS 8u

struct aggregator_process;
struct lane_dictionary;
struct wire_record;

struct lane_fault {
    const char *rule; // that is broken; NULL: none
    bool is_of_book;  // the record was taken from the thread's book, not from the ring
    uint64_t pos;     // how much of the ring had been copied
    uint32_t count;
    uint64_t words[LANE_FAULT_WORDS]; // the record begins so
};

// Return the rule that a decoded record of a thread of the process broke, which was refused.
const char *lane_fault_rule(const struct wire_record *record,
                            const struct lane_dictionary *dictionary,
                            const struct aggregator_process *process);

// Note the first `count` words or fewer.
void lane_fault_note(struct lane_fault *fault,
                     const char *rule,
                     const uint64_t *words,
                     size_t count);

// Append one line without an end.
void lane_fault_text(struct strbuf *text, const struct lane_fault *fault);
