// SPDX-License-Identifier: MIT
// process_runtimes: notes in the record of each process which runtime it has (runtime_table.h), and
// whether its environment makes that call malloc for each object.
//
// The program's file tells it, once its path is known. Libraries tell it by their names while
// stacks are read (lane_dictionary.h), and the modules of a process that is attached to when it is
// opened. The environment is that of the process; of the program that cairn started it is cairn's
// own, if the process has ended. Other processes that end early keep their environment to
// themselves: then their objects count as not seen, and the sentence says how they are.
// Context: H, the recorder's main thread.
#pragma once

#include "aggregate/aggregator.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "symbols/runtimes/runtime_files.h"

// A zeroed one is empty.
struct process_runtimes {
    struct runtime_files files;
    size_t seen;            // processes of the aggregator that were put into `waiting`
    struct u32_vec waiting; // processes without a known runtime that have not ended
    struct u32_vec news;    // those whose runtime is known since the caller emptied this
};

void process_runtimes_release(struct process_runtimes *runtimes);

// Look at all processes that wait. `session_memory`: only a process that maps it is asked.
// ERR_NO_MEMORY, ERR_LIMIT.
enum err process_runtimes_round(struct process_runtimes *runtimes,
                                struct aggregator *aggregator,
                                int session_memory) MUST_USE;
