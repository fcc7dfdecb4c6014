// SPDX-License-Identifier: MIT
// recorder: runs a program and records its heap, from the question whether that can be done to the
// finished file.
//
//   preflight -> output probe -> session -> launch -> [drain, sample, checkpoint]*
//             -> names -> file
//
// The program's input, output, signals and exit status are its own. Ctrl-C goes to it, not to us:
// we finish when it has ended and everything that it started has. If descendants run on after it,
// Ctrl-C (or a TERM or HUP sent to us) ends the recording and lets them run. If the recording ends
// before the program (run.duration_ms), its file is written then, and we wait for the program.
// Threads: the caller's does everything; one more keeps the session's clock (session_clock.h).
// Context: H. Prints nothing: what people should know while it runs goes to `log`.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregate/tables/stack_table.h"
#include "base/err.h"
#include "host/containers/string_table.h"
#include "host/containers/vec.h"
#include "host/text/strbuf.h"
#include "recorder/control/run_control.h"
#include "recording/format/tables.h"

DEFINE_VEC(rec_symbol_vec, struct rec_symbol);

enum recorder_exit {
    RECORDER_EXIT_OUTPUT = 2, // the output cannot be written
};

struct recorder_callbacks {
    void *context;

    // Where to write the recording of the process `pid`. Called before the program runs, too, with
    // our own pid, to see whether such a file can be written.
    enum err (*output_path)(void *context, uint32_t pid, struct strbuf *out, struct err_info *info);

    // One sentence for people, without a line feed. May be NULL.
    void (*log)(void *context, const char *sentence);

    // Modules and frames may have come to `stacks`, while the program runs; those that were there
    // stay. Should be quick. May be NULL.
    void (*see_code)(void *context, const struct stack_table *stacks);

    // Gives frames their symbols, once, at the end: sets symbol_first and symbol_count of
    // recording->frames and what modules say of them; appends to `symbols`; interns texts into
    // `strings`. May be NULL. Failing is no reason to lose the recording: it is written without.
    enum err (*name_frames)(void *context,
                            struct recording *recording,
                            struct string_table *strings,
                            struct rec_symbol_vec *symbols);

    // While the file is written, at the end. May be NULL.
    void (*progress)(void *context, const char *what, uint64_t done, uint64_t total);

    // The recording is at `path`, and the program goes on. May be NULL.
    void (*complete)(void *context, const struct recording *recording, const char *path);
};

struct recorder_options {
    char *const *argv;           // ended by NULL; argv[0] is looked up in PATH
    const char *preload_library; // absolute path; may have spaces
    const char *tool_version;
    uint32_t max_frames;
    uint64_t checkpoint_interval_ms; // 0: no checkpoints
    struct run_control_options run;
    uint64_t max_memory_bytes; // memory_budget.h; 0: no cap
    mode_t file_mode;          // of the recording; 0: the owner's alone
    bool lists_blocks;         // block_list.h
    bool logs_events;          // event_log.h; no thread then keeps events to itself
    bool follow_children;
    bool allow_own_malloc;  // record a program that has an allocator of its own, as far as possible
    bool check_unwind;      // SESSION_CHECK_UNWIND
    bool no_nursery;        // SESSION_NO_NURSERY
    bool counts_stamps;     // session_options
    bool is_always_pressed; // threads are told so (pressure.h), whether it is true or not
    bool may_sample;        // SESSION_OVERFLOW_SAMPLE; not with logs_events
    struct recorder_callbacks callbacks;
};

struct recorder_state;

struct recorder_result {
    int exit_status;   // if the program did not run: what a shell would give
    int wait_status;   // else: as waitpid gives it
    bool has_run;      // wait_status is valid
    bool is_told;      // the file could not be written, and callbacks->log has heard of it before
    char *output_path; // owned; NULL if nothing was written
    struct recording recording;   // all but the history of rows; borrows from `state`
    struct recorder_state *state; // owned
};

// Runs options->argv and records it. After a failure `info` says why, and `result` holds what there
// is: exit_status always, and if the program ran, wait_status and perhaps the recording.
// recorder_result_release() in either case.
enum err recorder_run(const struct recorder_options *options,
                      struct recorder_result *result,
                      struct err_info *info) MUST_USE;

void recorder_result_release(struct recorder_result *result);
