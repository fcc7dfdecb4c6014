// SPDX-License-Identifier: MIT
// record_run: runs a program under the recorder. The input is settings, the output an exit status.
//
// Context: H. Prints errors on stderr, and a summary of the recording unless `is_quiet`.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/record/record_listen.h"
#include "host/containers/vec.h"
#include "inject/allocators/allocator_names.h"
#include "push/push_process.h"
#include "recorder/control/run_control.h"
#include "recorder/output/rotation.h"

struct record_settings {
    const char *output; // pattern of the file name, see output_name.h; NULL: the default
    uint64_t checkpoint_interval_ms;
    uint32_t max_frames;
    struct run_control_options run;
    struct listen_settings listen;
    struct push_options push;
    struct rotation_options rotation;
    uint64_t max_memory_bytes; // limit of the recorder; 0: a share of the available memory
    uint32_t file_mode;        // permissions of the recording; 0: only the owner
    bool is_strict;            // the run fails if the recording cannot be written
    bool guards_oom;
    bool lists_blocks;
    bool logs_events;
    bool may_sample;       // --overflow=sample
    bool reads_python;     // --python
    uint64_t sample_bytes; // --sample; 0: every block is recorded
    bool is_quiet;
    bool no_children;
    bool without_symbols;    // --no-symbols: names are looked up when the recording is opened
    bool searches_libraries; // --all-allocators
    bool is_forced;          // record a program that has its own allocator
    const struct u32_vec *attach_pids; // record these processes instead of a program; NULL: none
    bool attaches_by_name;             // recorder_options
    bool is_verbose;                   // say how long threads were stopped
    const struct allocator_name_vec *allocator_names; // of the processes; NULL: none
};

extern const struct record_settings record_default_settings;

// Append the path of the recording of a process on this host. ERR_INVALID for an invalid pattern
// (output_name.h).
enum err
record_output_path(const char *pattern, uint32_t pid, struct strbuf *out, struct err_info *info)
    MUST_USE;

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

// Run argv[0] (looked up in PATH) with argv; or attach to settings->attach_pids, and argv is empty.
// Return the exit status for this process. If a signal killed the program, raise the same signal
// and do not return.
int record_run(const struct record_settings *settings, char **argv);
