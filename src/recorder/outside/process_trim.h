// SPDX-License-Identifier: MIT
// process_trim: lets a process give free memory back, and measures what came of it.
//
// Context: H. Failure: the process runs on as before, and `info` has a sentence.
#pragma once

#include <stdint.h>

#include "attach/trim.h"
#include "base/err.h"
#include "recorder/outside/release_estimate.h"

struct process_trim {
    uint64_t before_bytes; // of resident memory
    uint64_t after_bytes;
    struct release_estimate promised; // by all calls
    struct trim trim;
};

// Do so; a thread is looked for as long as `patience_ms`. The errors of trim_run.
enum err
process_trim_run(int pid, uint64_t patience_ms, struct process_trim *out, struct err_info *info)
    MUST_USE;
