// SPDX-License-Identifier: MIT
// recorder: runs a program, or attaches to processes, and records their heap, from the check before
// the start to the finished file.
//
//   preflight -> output probe -> session -> launch -> [drain, sample, checkpoint]*
//             -> names -> file
//
// The program keeps its own input, output, signals and exit status. Ctrl-C goes to the program, not
// to the recorder, which finishes when the program and all its descendants have ended. If
// descendants outlive the program, Ctrl-C (or a TERM or HUP sent to the recorder) ends the
// recording and lets them run. If the recording ends before the program (run.duration_ms), the
// recorder writes the file then and waits for the program.
//
// Processes that were attached to are not the recorder's children: the recording ends with the last
// of them, after its duration, or at a signal to the recorder; then their functions are restored,
// and they run on.
// Threads: the caller's thread does everything; one more keeps the session's clock
// (session_clock.h).
// Context: H. Prints nothing: messages to the user go to `log`.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregate/tables/stack_table.h"
#include "base/err.h"
#include "host/containers/string_table.h"
#include "host/containers/vec.h"
#include "host/text/strbuf.h"
#include "recorder/aside/aside.h"
#include "recorder/control/run_control.h"
#include "recorder/output/rotation.h"
#include "recording/format/tables.h"

DEFINE_VEC(rec_symbol_vec, struct rec_symbol);

enum recorder_exit {
    RECORDER_EXIT_OUTPUT = 2, // the output cannot be written
};

struct allocator_name_vec;

// Reads something of a process aside (aside/aside.h), and records meanwhile. ERR_OK: `context` of
// the work is the caller's again; else it is released, or will be.
struct aside_reader {
    enum err (*read)(void *context, uint32_t pid, const struct aside_work *work);
    void *context;
};

struct recorder_callbacks {
    void *context;

    // Return the path of the recording of the process `pid`. Also called before the program runs,
    // with the recorder's own pid, to check that the file can be written.
    enum err (*output_path)(void *context, uint32_t pid, struct strbuf *out, struct err_info *info);

    // Show the user one sentence without a line feed. May be NULL.
    void (*log)(void *context, const char *sentence);

    // Note that `stacks` may have new modules and frames while the program runs; earlier ones stay,
    // but a module without a path may get one. `is_ending`: the program has ended, or waits to.
    // Should be quick; what it reads of processes may not be, and `reader` reads it. May be NULL.
    void (*see_code)(void *context,
                     const struct stack_table *stacks,
                     bool is_ending,
                     const struct aside_reader *reader);

    // Symbolize frames, once, at the end: set symbol_first and symbol_count of recording->frames
    // and the symbol fields of modules, append to `symbols`, intern texts into `strings`. May be
    // NULL. After a failure the recording is written without symbols.
    enum err (*name_frames)(void *context,
                            struct recording *recording,
                            struct string_table *strings,
                            struct rec_symbol_vec *symbols);

    // Report the progress of writing the file at the end. May be NULL.
    void (*progress)(void *context, const char *what, uint64_t done, uint64_t total);

    // Begin to read the files of the server beside the recorder anew (`cairn ctl FILE reload`);
    // return whether that has ended, with its result. Neither may wait. Both may be NULL.
    enum err (*reload)(void *context, struct err_info *info);
    bool (*has_reloaded)(void *context, struct err_info *result);

    // Note that the recording is at `path` while the program still runs. May be NULL.
    void (*complete)(void *context, const struct recording *recording, const char *path);
};

struct recorder_options {
    char *const *argv;           // ended by NULL; argv[0] is searched in PATH
    const uint32_t *attach_pids; // record these processes, which run; argv is empty then
    size_t attach_count;         // 0: start argv
    bool tells_stops;            // log how long the threads of attached processes were stopped
    bool tells_runtimes;         // log which runtimes hide their objects
    bool attaches_by_name;       // omit processes that cannot be recorded, if another one can
    const struct allocator_name_vec *allocator_names; // of attached processes; may be NULL
    const char *preload_library;                      // absolute path; may have spaces
    const char *tool_version;
    uint32_t max_frames;
    uint64_t checkpoint_interval_ms; // 0: no checkpoints
    struct run_control_options run;
    struct rotation_options rotation;
    uint64_t max_memory_bytes;                // memory_budget.h; 0: no cap
    bool has_usual_memory;                    // that is the share that is usual here, or more
    mode_t file_mode;                         // of the recording; 0: only the owner may read it
    const char *cgroup_root;                  // /sys/fs/cgroup; NULL: limits are not read
    const _Atomic uint64_t *lost_profiles;    // which a collector did not get; NULL: there is none
    const _Atomic uint64_t *reduced_profiles; // in which stacks are added up for it; or NULL
    bool guards_oom;                          // oom_guard.h
    bool lists_blocks;                        // block_list.h
    bool follow_children;
    bool searches_libraries; // preflight_options
    bool allow_own_malloc;   // record as much as possible of a program with an allocator of its own
    bool check_unwind;       // SESSION_CHECK_UNWIND
    bool reads_python;       // SESSION_PYTHON
    bool may_sample;         // SESSION_OVERFLOW_SAMPLE
    uint64_t sample_bytes; // session_header; at most BLOCK_WEIGHT_INTERVAL_MAX; not with may_sample
    uint64_t sample_seed;  // 0: any
    struct recorder_callbacks callbacks;
};

struct recorder_state;

struct recorder_result {
    int exit_status;              // if the program did not run: as a shell would return it
    int wait_status;              // else: as waitpid returns it
    bool has_run;                 // wait_status is valid
    bool is_reported;             // callbacks->log has had a message about the failure
    char *output_path;            // owned; NULL if nothing was written
    struct recording recording;   // all but the history of rows; borrows from `state`
    struct recorder_state *state; // owned
};

// Run options->argv and record it. After a failure `info` has the reason. `result` always has
// exit_status; if the program ran, it has wait_status and perhaps the recording. Call
// recorder_result_release() in either case.
enum err recorder_run(const struct recorder_options *options,
                      struct recorder_result *result,
                      struct err_info *info) MUST_USE;

void recorder_result_release(struct recorder_result *result);
