// SPDX-License-Identifier: MIT
// way_probe: whether a way into a program works on this machine: it records a program of cairn's
// own by that way, and compares the recording with what the program does.
//
//   probe_program  <-- recorded by --  cairn record  (a child process)
//                                          |
//                     counts, stacks, ... of the recording --> way_result
//
// A way fails with the sentence that the recorder has said, which states the cause. Context: H; one
// thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/text/strbuf.h"

struct way_probe {
    const char *name;   // "a program from its start"
    const char *option; // of `cairn record`; NULL: none
    bool is_static;     // the program is linked statically
    bool is_attached;   // it runs already
    bool is_sampled;
};

enum way_verdict {
    WAY_WORKS,
    WAY_FAILS,
    WAY_UNTRIED, // this build of cairn does not have the program
};

struct way_result {
    enum way_verdict verdict;
    struct strbuf detail; // owned; a sentence, for WAY_FAILS the cause
};

// All ways in, in the order in which they are to be tried.
extern const struct way_probe way_probes[];
extern const size_t way_probe_count;

// Try a way. The recording is written to `path` and removed. At `deadline_ms` of the monotonic
// clock all is killed, and the way fails. ERR_NO_MEMORY, or an error with a sentence if nothing
// could be started.
enum err way_probe_run(const struct way_probe *way,
                       const char *path,
                       uint64_t deadline_ms,
                       struct way_result *out,
                       struct err_info *info) MUST_USE;
void way_result_release(struct way_result *result);
