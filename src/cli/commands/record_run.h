// SPDX-License-Identifier: MIT
// record_run: runs a program under the recorder, from settings to exit status.
//
// Context: H. Prints on stderr: mistakes always, a summary of the recording unless it is quiet.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "recorder/control/run_control.h"

struct record_settings {
    const char *output; // pattern of the file's name, see output_name.h; NULL: the default one
    uint64_t checkpoint_interval_ms;
    uint32_t max_frames;
    struct run_control_options run;
    uint64_t max_memory_bytes; // of the recorder; 0: a share of what there is
    uint32_t file_mode;        // permissions of the recording; 0: the owner's alone
    bool is_strict;            // a recording that cannot be written is a failure of the run
    bool lists_blocks;
    bool logs_events;
    bool may_sample; // --overflow=sample
    bool is_quiet;
    bool no_children;
    bool without_symbols; // names are looked up when the recording is read
    bool is_forced;       // record a program that has its own allocator
};

extern const struct record_settings record_default_settings;

struct record_outcome {
    bool has_run;     // then wait_status is valid
    bool is_recorded; // then there is a file
    int wait_status;
    int exit_status; // if it has not run: what a shell would give
    char *path;      // owned; of the file, NULL if there is none
};

// Runs argv[0] and says what became of it. The caller frees the path.
void record_program(const struct record_settings *settings,
                    char **argv,
                    struct record_outcome *out);

// Runs argv[0] (looked up in PATH) with argv. Returns the exit status for our process; does not
// return if the program was killed by a signal.
int record_run(const struct record_settings *settings, char **argv);
