// SPDX-License-Identifier: MIT
// recorder_state: one recording under way. Only recorder.c and recorder_*.c use it.
//
// Valid when zeroed, but for the descriptors, which are -1. Context: H, the recorder's main thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregate/aggregator.h"
#include "aggregate/block_list.h"
#include "host/os/file.h"
#include "recorder/control/control_socket.h"
#include "recorder/control/run_control.h"
#include "recorder/ingest/drain.h"
#include "recorder/ingest/pressure.h"
#include "recorder/ingest/session_clock.h"
#include "recorder/launch/launch.h"
#include "recorder/launch/preflight.h"
#include "recorder/launch/preload_path.h"
#include "recorder/memory/memory_snapshots.h"
#include "recorder/memory/proc_sampler.h"
#include "recorder/output/aggregator_snapshot.h"
#include "recorder/output/checkpoint.h"
#include "recorder/output/event_log.h"
#include "recorder/processes/unrecorded_list.h"
#include "recorder/processes/unrecorded_tree.h"
#include "recorder/recorder.h"
#include "recorder/session/session_create.h"

struct recorder_state {
    const struct recorder_options *options; // borrowed
    struct preflight preflight;
    struct session session;
    struct aggregator aggregator;
    struct drain drain;
    struct proc_sampler sampler;
    struct memory_snapshots looks;
    size_t sampled_processes; // so many had joined at the latest round of samples
    uint64_t newcomers_ms;    // before that, no round is made for new ones
    uint32_t exit_slot;       // of the program's image that may wait; SESSION_MAX_PROCESSES: none
    struct session_clock clock;
    struct pressure pressure;
    struct launch_signals signals;
    struct launched program;
    struct checkpoint checkpoint;
    struct aggregator_snapshot snapshot; // the final one
    struct rec_symbol_vec symbols;
    struct preload_path library;
    struct run_control control;
    struct block_list blocks; // if they are wanted
    struct event_log events;  // the same
    struct control_socket socket;
    struct unrecorded_list unrecorded;
    struct unrecorded_tree unrecorded_tree;
    struct strbuf output;          // path of the recording
    struct strbuf output_absolute; // as `cairn ctl` names it
    uint64_t start_unix_ns;
    uint64_t next_stranger_look_ms; // at processes that go on
    uint64_t next_late_look_ms;     // for processes that have not joined yet
    unsigned looks_in_vain;         // since one was last seen
    uint64_t quiet_since_ms;        // since then nothing recorded has been running
    uint64_t said_after_ms;         // when to tell the user that others still run
    uint64_t own_rss_bytes;         // our own peak when the program was forked off
    uint64_t program_rss_bytes;     // peak of the program and its children, once it has ended
    uint64_t end_ms;                // when the last process ended; 0: not yet
    int signal_fd;
    int own_memory;   // own_memory.h
    bool has_thinned; // live blocks were more than the memory is for
    bool has_merged;  // stacks were
    int wait_status;  // of the program, -1 while it runs
    bool has_signals; // they are to be restored
    bool is_launched;
    bool has_ended;       // the program has
    bool has_said_others; // that others still run
    bool is_stopped;      // recording ends although something still runs
    bool was_abandoned;   // threads took us for dead: what they did then is missing
};

// Records until everything has ended, or the user has had enough. ERR_NO_MEMORY, ERR_LIMIT: the
// aggregator is full; it holds what was recorded until then.
enum err recorder_loop(struct recorder_state *s, struct err_info *info) MUST_USE;

// The aggregator as a recording.
enum err recorder_snapshot(struct recorder_state *s,
                           enum rec_state state,
                           struct aggregator_snapshot *out) MUST_USE;

// Waits until the program has ended, passing on the signals that come; records nothing.
void recorder_wait(struct recorder_state *s);

// Takes in what was executed unrecorded; UINT64_MAX: the last word.
enum err recorder_hear_of_unrecorded(struct recorder_state *s, uint64_t now_ms) MUST_USE;

// Writes events that have waited long enough; UINT64_MAX: all.
void recorder_follow_log(struct recorder_state *s, uint64_t now_ms);

// `cairn ctl`: hears requests, says that a checkpoint is over.
void recorder_control_hear(struct recorder_state *s);
void recorder_control_tell_checkpoint(struct recorder_state *s);

// Tells the user, if anybody listens.
void recorder_log(const struct recorder_state *s, const char *format, ...) PRINTF_LIKE(2, 3);
