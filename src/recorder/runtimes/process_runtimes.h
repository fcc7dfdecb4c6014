// SPDX-License-Identifier: MIT
// process_runtimes: notes in the record of each process which runtime it has (runtime_table.h), and
// whether its environment makes that call malloc for each object.
//
// The program's file tells it, once its path is known. Libraries tell it by their names while
// stacks are read (lane_dictionary.h), and the modules of a process that is attached to when it is
// opened. A process tells as it joins what its environment has (session/runtime_settings.h). One
// that has not joined is asked; of the program that cairn started the environment is cairn's own,
// if the process has ended.
// What is read of a process, its file and its environment, comes when that lets it. So it is read
// aside: process_runtimes_next names the process, and process_runtimes_put takes the result.
// Context: H, the recorder's main thread, except runtime_reading_take.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "aggregate/aggregator.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "host/text/strbuf.h"
#include "symbols/runtimes/runtime_files.h"

#define RUNTIMES_LOOKS_MAX 64u // at processes that wait, in one call

// What is read aside of one process.
struct runtime_reading {
    pid_t pid;                     // 0: it has ended
    int session_memory;            // owned; only a process that maps it is asked
    struct strbuf path;            // of the file; empty: it was read
    const struct runtime *runtime; // the result, or known; NULL: none is
    bool is_started_program;       // cairn's environment is like its own
    bool tells_settings;           // `settings` is known, so that no environment is read
    uint32_t settings;             // enum runtime_setting
    bool is_open;                  // the result: its environment makes the runtime call malloc
};

// A zeroed one is empty.
struct process_runtimes {
    struct runtime_files files;
    size_t seen;            // processes of the aggregator that were put into `waiting`
    struct u32_vec waiting; // processes without a known runtime that have not ended
    size_t next;            // of `waiting`, to be looked at
    struct u32_vec news;    // those whose runtime is known since the caller emptied this
};

void process_runtimes_release(struct process_runtimes *runtimes);

// Look at processes that wait, some in each call. *out_process: one that is to be read, as *out;
// the caller owns that. NULL: none now. `looks`: the most to look at. ERR_NO_MEMORY, ERR_LIMIT.
enum err process_runtimes_next(struct process_runtimes *runtimes,
                               struct aggregator *aggregator,
                               int session_memory,
                               size_t looks,
                               struct aggregator_process **out_process,
                               struct runtime_reading **out) MUST_USE;

// On any thread: read it.
void runtime_reading_take(void *reading);
void runtime_reading_free(void *reading);

// Take what was read; `reading` NULL: that did not come in time. ERR_NO_MEMORY, ERR_LIMIT.
enum err process_runtimes_put(struct process_runtimes *runtimes,
                              struct aggregator *aggregator,
                              struct aggregator_process *process,
                              const struct runtime_reading *reading) MUST_USE;
