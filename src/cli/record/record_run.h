// SPDX-License-Identifier: MIT
// record_run: runs a program under the recorder. The input is settings, the output an exit status.
//
// Context: H. Prints errors on stderr, and a summary of the recording unless `is_quiet`.
#pragma once

#include <stdbool.h>

#include "cli/record/record_collectors.h"
#include "push/push_process.h"
#include "recorder/recorder.h"

struct record_settings {
    struct recorder_options recorder; // without what record_run.c sets; max_memory_bytes 0: a share
    const char *output; // pattern of the file name, see output_name.h; NULL: the default
    struct listen_settings listen;
    struct push_options push;
    bool is_strict; // the run fails if the recording cannot be written
    bool is_quiet;
    bool no_children;
    bool without_symbols; // --no-symbols: names are looked up when the recording is opened
};

#define RECORD_DEFAULTS                                                                      \
    {                                                                                        \
        .recorder = {.checkpoint_interval_ms = 10000, .max_frames = SESSION_FRAMES_DEFAULT}, \
        .push = {.interval_ms = 15000,                                                       \
                 .timeout_ms = 10000,                                                        \
                 .spool_max_bytes = 64 << 20,                                                \
                 .limits = {.samples = 16000, .bytes = 4 << 20}},                            \
    }

struct record_outcome {
    bool has_run;     // then wait_status is valid
    bool is_recorded; // a file was written
    int wait_status;
    int exit_status; // if the program did not run: the status that a shell would return
    char *path;      // owned; of the file, NULL without a file
};

// Run argv[0] and fill in the result. The caller frees the path.
void record_program(const struct record_settings *settings,
                    char **argv,
                    struct record_outcome *out);

// Run argv[0] (looked up in PATH) with argv; or attach to recorder.attach_pids, and argv is empty.
// Return the exit status for this process. If a signal killed the program, raise the same signal
// and do not return.
int record_run(const struct record_settings *settings, char **argv);
