// SPDX-License-Identifier: MIT
// recorder_state: a recording in progress. Only recorder.c and recorder_*.c use it.
//
// Valid when zeroed, except the descriptors, which must be -1.
// Context: H, the recorder's main thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregate/aggregator.h"
#include "aggregate/block_list.h"
#include "aggregate/books/book_blocks.h"
#include "aggregate/books/listed_block.h"
#include "attach/attach.h"
#include "attach/plain_modules.h"
#include "host/threads/urgent_turns.h"
#include "recorder/aside/aside.h"
#include "recorder/control/control_socket.h"
#include "recorder/control/run_control.h"
#include "recorder/ingest/drain.h"
#include "recorder/launch/launch.h"
#include "recorder/launch/preflight.h"
#include "recorder/launch/preload_path.h"
#include "recorder/memory/memory_snapshots.h"
#include "recorder/memory/oom_guard.h"
#include "recorder/output/aggregator_snapshot.h"
#include "recorder/output/checkpoint.h"
#include "recorder/output/rotation.h"
#include "recorder/processes/attach_step.h"
#include "recorder/processes/exec_follow.h"
#include "recorder/processes/hooked_list.h"
#include "recorder/processes/pending_processes.h"
#include "recorder/processes/unrecorded_list.h"
#include "recorder/processes/unrecorded_tree.h"
#include "recorder/recorder.h"
#include "recorder/runtimes/process_runtimes.h"
#include "recorder/samples/proc_sampler.h"
#include "recorder/session/session_clock.h"
#include "recorder/session/session_create.h"
#include "recorder/session/words_memory.h"

// A process that waits in dlopen for its allocators to be hooked, and the searches for it.
struct module_wait {
    struct loaded_note loaded;
    uint32_t searches; // that are not over
    bool is_hooked;
};

// A process that the recorder has attached to.
struct attached_process {
    struct attach *attach;      // owned, except while `search` runs
    int pidfd;                  // owned; -1: none
    struct attach_step *search; // owned; for late modules; NULL: none
    struct module_wait *wait;   // what waits for `search`; NULL: nothing
    size_t hooked_before;       // functions, before `search`
    bool has_ended;
    bool is_followed;    // it was executed by a recorded process
    bool has_joined;     // recorder_attach_join
    uint32_t end_rounds; // of the loop since it has ended
    uint64_t alive_ms;   // when it was last seen alive
    uint64_t dead_ms;    // when that was over; 0: not yet
};
DEFINE_VEC(attached_process_vec, struct attached_process);

// A process on its way to the former (recorder_join.c).
struct joining {
    int pid;
    uint64_t start;           // proc_file_start
    struct attach *attach;    // owned, except while `step` runs
    struct attach_step *step; // owned
    int pidfd;                // owned; -1: none yet
    bool is_initial;          // of the user's choice
    bool is_beginning;
};
DEFINE_VEC(joining_vec, struct joining);

// A process that was asked for and has not become an attached one.
struct settled_process {
    int pid;
    uint64_t start;
};
DEFINE_VEC(settled_process_vec, struct settled_process);

// A forked child that is searched for late modules.
struct searched_copy {
    struct attach *attach; // owned, except while `step` runs
    struct attach_step *step;
    struct module_wait *wait;
};
DEFINE_VEC(searched_copy_vec, struct searched_copy);

// The rest of a recorder that has nothing to do (recorder_rest.c).
struct recorder_rest {
    uint64_t quiet_since_ms; // nothing has been recorded since then
    uint64_t began_ms;       // of the rest
    uint64_t busy_passes;    // in which there was something to do
    bool is_resting;
    bool has_read; // something aside, in this pass: it took an unknown time
};

// What changes if anything has happened that a reader of the recording may see.
struct recorder_activity {
    uint64_t busy_passes;
    uint64_t marks;
    uint64_t rss_moved_ms;
};

// While processes begin to be recorded, all their threads run at once, and others wait for a
// recorder that does not get the processor; so do recorded threads on a busy machine.
struct recorder_urgency {
    struct urgent_turns turns;
    uint64_t until_ms; // CLOCK_MONOTONIC
};

// How long the lanes were not read while the recorder did not sleep.
struct lane_gaps {
    uint64_t since_ns; // CLOCK_MONOTONIC; 0: it sleeps, or has not begun
    uint64_t since_processor_ns;
    uint64_t longest_ns;
    uint64_t longest_processor_ns; // of the recorder's own work
};

struct recorder_state {
    const struct recorder_options *options; // borrowed
    struct preflight preflight;
    struct session session;
    struct aggregator aggregator;
    struct drain drain;
    struct listed_block_vec listed_blocks; // of the process whose memory is split
    struct proc_sampler sampler;
    struct memory_snapshots memory_snapshots;
    size_t sampled_processes;     // joined processes at the latest round of samples
    uint64_t newcomers_ms;        // earliest time of a round for new processes
    bool owes_snapshot;           // the first one was left for later
    uint64_t unjudged_ms;         // end of the latest snapshots, until they are judged; 0: they are
    uint64_t snapshot_peak_bytes; // of the heap until the latest snapshots were taken
    uint64_t snapshot_live_bytes; // of all processes, then
    uint64_t served_ns;           // processor time for other processes, while one was read
    struct session_clock clock;
    struct recorder_rest rest;
    struct recorder_urgency urgency;
    uint32_t tick_ms; // of the clock
    struct launch_signals signals;
    struct launched program;
    struct checkpoint checkpoint;
    struct rotation rotation;
    struct oom_guard oom_guard;          // with options->guards_oom
    uint64_t kills_at_start;             // of the kernel, for lack of memory (memory_kills_of)
    struct aggregator_snapshot snapshot; // the final one
    struct rec_symbol_vec symbols;
    struct preload_path library;
    struct run_control control;
    struct block_list blocks; // with options->lists_blocks
    struct book_blocks book_blocks;
    struct control_socket socket;
    struct recorder_activity activity; // at the latest look
    uint64_t activity_number;          // of it
    struct unrecorded_list unrecorded;
    struct unrecorded_tree unrecorded_tree;
    struct strbuf output;          // path of the recording
    struct strbuf output_absolute; // as `cairn ctl` names it
    uint64_t start_unix_ns;
    uint64_t next_stranger_check_ms; // next drain_find_strangers
    struct lane_gaps gaps;
    uint64_t next_replaced_ns;   // next looks at processes that execute others
    struct pending_wait pending; // for processes that have not joined yet
    uint64_t said_after_ms;      // when to tell the user that other processes still run
    uint64_t own_rss_bytes;      // the recorder's peak at the fork of the program
    uint64_t program_rss_bytes;  // peak of the program and its children, after its end
    uint64_t program_end_ms;     // end of the program; 0: not yet
    uint64_t end_ms;             // end of the last process, or of recording it; 0: not yet
    int signal_fd;
    int own_memory; // own_memory.h
    struct words_memory words_memory;
    bool has_thinned;  // threads choose blocks for lack of memory
    bool has_merged;   // stacks were merged for lack of memory
    bool has_exceeded; // so many threads take more than there is
    int wait_status;   // of the program; -1 while it runs
    bool has_signals;  // they must be restored
    bool is_launched;
    bool has_ended;       // the program has ended
    bool has_said_others; // the user knows that other processes still run
    bool is_stopped;      // recording ends although processes still run
    bool was_abandoned;   // threads took the recorder for dead, and missed events until the end
    bool has_said_gap;    // the user knows that threads took it for dead
    uint64_t passed_ms;   // time of the latest pass before that
    bool is_attached;     // to processes: nothing is launched
    // The processes of the user's choice first; also the program, if it has the agent, and what was
    // followed (recorder_follow.c).
    struct attached_process_vec attached;
    struct joining_vec joining;
    struct settled_process_vec settled;
    struct searched_copy_vec copies;
    uint32_t left_steps;         // threads that did not come back in time
    uint32_t left_asides;        // the same, of other work aside
    bool has_work_aside;         // which is waited for
    struct aside *waiting_aside; // a thread that takes the next work; owned
    bool is_answering;           // a request of `cairn ctl`
    struct exec_follow follow;
    struct plain_modules *plain_modules; // of attach_options; owned, kept if a thread was left
    struct process_runtimes runtimes;
    struct strbuf said_runtimes; // sentences that the user has read
    struct strbuf hidden;        // of all processes: the text of the counter hidden_allocators
    uint64_t hidden_count;
    struct strbuf unpatched; // of all processes: the text of the counter of that name
    uint64_t unpatched_count;
    struct rec_hook_vec hooked; // functions, of all processes
    struct strbuf unread;       // of all processes: the text of the counter unread_parts
    uint64_t unread_count;
    uint64_t slow_count;    // processes with is_unread
    struct strbuf omitted;  // why cairn did not attach to some: the text of omitted_processes
    uint64_t omitted_count; // of these
    struct u32_vec earlier_children; // of the user's choice, before it was attached to
    struct fresh_start fresh;        // with preflight.wants_agent: the program until it begins
};

// Attach instead of launching: find and check the processes, connect them with the session, ask
// whether all have ended, let them go. Letting go accepts processes that were never attached to, or
// have ended.
enum err recorder_attach_open(struct recorder_state *s, struct err_info *info) MUST_USE;
enum err recorder_attach_begin(struct recorder_state *s, struct err_info *info) MUST_USE;
bool recorder_attach_is_over(struct recorder_state *s);
void recorder_attach_end(struct recorder_state *s);
void recorder_attach_release(struct recorder_state *s);

enum join_result {
    JOIN_KNOWN, // it is a part of the recording, was started by one, or cannot be recorded
    JOIN_LATER, // there is no result yet: ask again
};

// Attach to one more process, which has begun since. recorder_join_round does it, step by step, and
// waits for nothing. After a failure the process is left out.
enum err recorder_attach_join(struct recorder_state *s,
                              int pid,
                              enum join_result *out,
                              struct err_info *info) MUST_USE;
enum err recorder_join_round(struct recorder_state *s, uint64_t now_ms) MUST_USE;

// Of both ways to attach: start to open a process; describe it and start to begin; list it after
// that, whatever the result; remove it at any time. A step of any kind.
enum err recorder_join_open(struct recorder_state *s, int pid, bool is_urgent) MUST_USE;
enum err recorder_join_begin(struct recorder_state *s,
                             struct joining *joining,
                             uint64_t now_ms,
                             struct err_info *info) MUST_USE;
enum err recorder_join_finish(struct recorder_state *s, size_t index) MUST_USE;
void recorder_join_remove(struct recorder_state *s, size_t index);
enum err recorder_join_is_late(const struct joining *joining, struct err_info *info) MUST_USE;
void recorder_join_give_up(struct recorder_state *s, size_t index);
struct attach_step *recorder_join_step(struct recorder_state *s,
                                       enum attach_step_kind kind,
                                       int pid,
                                       struct attach *attach,
                                       bool is_urgent);

// Of recorder_attach_begin: tell the recording about a process, before it joins.
enum err recorder_attach_describe(struct recorder_state *s,
                                  const struct attach *attach,
                                  uint64_t now_ms) MUST_USE;
// Follow what recorded processes execute, as far as it cannot load the library (exec_follow.h):
// begin, do what is due, ask whether such a program runs, end. Recorded programs stay attached to.
void recorder_follow_begin(struct recorder_state *s);
enum err recorder_follow_round(struct recorder_state *s, uint64_t now_ms) MUST_USE;
void recorder_follow_note_image(struct recorder_state *s,
                                uint32_t slot,
                                uint64_t image,
                                uint64_t now_ms);
uint32_t recorder_follow_running(const struct recorder_state *s);
// The same without the threads that have not yet left a process which has ended.
uint32_t recorder_follow_living(const struct recorder_state *s);
enum err recorder_follow_end(struct recorder_state *s) MUST_USE;

// Say why a process is left out, and note it in the recording.
void recorder_attach_omit(struct recorder_state *s, const struct err_info *trouble);

// Say what could not be hooked in a process, or how long it was stopped.
enum err recorder_attach_log(struct recorder_state *s, const struct attach *attach) MUST_USE;
// Note in the recording which functions are hooked now, and what could not be read; say the former
// with --verbose, the latter once.
enum err recorder_attach_note(struct recorder_state *s, const struct attach *attach) MUST_USE;
void recorder_attach_log_stop(const struct recorder_state *s,
                              const struct attach *attach,
                              size_t function_count);

// Hook allocators in libraries that processes with the agent have loaded: of those that wait for
// it, and let them go on. Fails for lack of memory alone.
enum err recorder_modules_round(struct recorder_state *s) MUST_USE;
// Start to search one process, which is not searched.
enum err recorder_modules_begin(struct recorder_state *s, struct attached_process *process)
    MUST_USE;
// End the search of a process, also one that does not come to its end. Then `attach` is an empty
// one, and its thread lets the process go.
void recorder_modules_leave(struct recorder_state *s, struct attached_process *process);
void recorder_modules_release(struct recorder_state *s);

// Start the program with the agent instead of the preload library (preflight.wants_agent): launch
// it as `plan` says, put the agent in before its first instruction, let it begin.
enum err recorder_launch_with_agent(struct recorder_state *s,
                                    const struct launch_plan *plan,
                                    struct err_info *info) MUST_USE;

// Do work aside, and serve the recorded processes meanwhile. Else, whatever the failure, `context`
// is released or will be. ERR_LIMIT: it is not over in time; ERR_CANCELLED: recording ends; ERR_IO:
// there is no thread.
enum err recorder_do_aside(struct recorder_state *s, const struct aside_work *work) MUST_USE;

// The same, as aside_reader.read: note also that the process did not let itself be read.
enum err recorder_read_aside(void *s, uint32_t pid, const struct aside_work *work) MUST_USE;

// Note that a process did not let itself be read in time, if `err` says so; `process` may be NULL.
// It is not read again: each attempt takes time, and a thread for good.
void recorder_note_unread(struct recorder_state *s,
                          struct aggregator_process *process,
                          pid_t pid,
                          enum err err);

// Return whether a process maps the session, or may, read aside. One that does not let itself be
// read does.
bool recorder_may_map(void *s, pid_t pid);

// Return whether no process will join any more. Searches for one aside, if that is due.
bool recorder_none_is_pending(struct recorder_state *s);

// Record until all processes have ended or the user stops it. ERR_NO_MEMORY, ERR_LIMIT: the
// aggregator is full; it holds what was recorded until then.
enum err recorder_loop(struct recorder_state *s, struct err_info *info) MUST_USE;

// Of the loop: begin a pass, and set the clock if it rests; then sleep without it until something
// happens. False: there is something to do, or there was a moment ago. `is_busy`: in this pass.
void recorder_rest_begin_pass(struct recorder_state *s);
// The same of a pass while work is done aside; who asks for the session meanwhile ends the rest.
void recorder_rest_serve(struct recorder_state *s);
bool recorder_rest_sleep(struct recorder_state *s, bool is_busy, uint64_t now_ms);
// The loop is over, whatever the reason.
void recorder_rest_end(struct recorder_state *s);

// Return whether the program and all that it started have ended, unless another process joins.
bool recorder_is_ending(const struct recorder_state *s);

// Take what the lanes hold, for those who wait for something else than the loop does.
enum err recorder_drain(struct recorder_state *s) MUST_USE;

// Take the signals. An attached recorder is stopped by them.
void recorder_take_signals(struct recorder_state *s);

// Take a snapshot of the aggregator as a recording.
enum err recorder_snapshot(struct recorder_state *s,
                           enum rec_state state,
                           struct aggregator_snapshot *out) MUST_USE;

// Wait until the program has ended, and pass signals on; records nothing.
void recorder_wait(struct recorder_state *s);

// Add the executed programs that are not recorded; UINT64_MAX: the final call.
enum err recorder_take_unrecorded(struct recorder_state *s, uint64_t now_ms) MUST_USE;

// Keep the state that the file has (rotation.h), and tell the user of a failure once.
void recorder_keep_state(struct recorder_state *s);

// Handle the requests of `cairn ctl`; reply to those that wait for a checkpoint. While threads have
// given the recorder up, requests wait.
void recorder_control_answer(struct recorder_state *s);
// `is_for_rotation`: they asked to keep it.
void recorder_control_reply_written(struct recorder_state *s, bool is_for_rotation);

// Show the user a message, if the caller has a `log`.
void recorder_log(const struct recorder_state *s, const char *format, ...) PRINTF_LIKE(2, 3);

// Tell the user once if threads' lanes take more memory than the recorder may.
void recorder_tell_of_lanes(struct recorder_state *s);

// Warn once of an allocator without names, and note it in the recording; the same of that in the
// program, if it was not asked for before.
enum err recorder_warn_hidden(struct recorder_state *s, const char *sentence, size_t len) MUST_USE;
enum err recorder_warn_programs_hidden(struct recorder_state *s) MUST_USE;

// Find the runtimes of new processes, one in each call, and warn of those in the programs of the
// user's choice. `is_last`: of all, as far as they can be read soon.
enum err recorder_find_runtimes(struct recorder_state *s, bool is_last) MUST_USE;
