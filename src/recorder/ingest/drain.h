// SPDX-License-Identifier: MIT
// drain: takes what all lanes hold into the aggregator, and follows lanes and processes from birth
// to end.
//
// One pass:
//   1. Find the processes that have died: before the time is read, so that all they did is in the
//      past, and before 3, so that their last records are seen.
//   2. Find new lanes and processes.
//   3. Take what stopped and dead threads hold (nursery_reader).
//   4. Read how far each lane has been written, all lanes in one snapshot.
//   5. Take the events up to a moment before 1, in the order of their stamps, across all lanes.
//   6. Recycle lanes that are closed and empty, and those of dead threads and processes.
//
// That moment is read before 1, so whatever led to an event before it has been published by 4. It
// lies before any event that others can have seen the effect of while it is not published
// (lane_header.pending_stamps), and before the exit of a process that has not been found dead. But
// no thread holds the others up for ever: after DRAIN_PATIENCE_MS they go on without it, which
// NOTE_order_timeouts counts.
//
// A dead process whose lanes are all recycled ends in the aggregator, and its slot is given back,
// at the moment of its exit, if it noted that, or else after its last event; then its heap may have
// been there until it was found dead.
//
// A process that executes another program joins again in a new slot: from then on its earlier image
// is one of the dead.
// Trust: slots and lanes are shared with the programs. Fields are copied once and checked; a lane
// that breaks the rules is counted, discarded from then on, and recycled when its process ends.
// Context: H, the recorder's main thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "aggregate/aggregator.h"
#include "base/err.h"
#include "recorder/ingest/lane_reader.h"
#include "recorder/ingest/pressure.h"
#include "recorder/session/nursery_reader.h"
#include "recorder/session/session_create.h"

#define DRAIN_PATIENCE_MS 100u

struct drain_lane {
    struct lane_reader reader;
    uint32_t process;         // slot
    bool is_corrupt;          // nothing is believed any more
    bool is_done;             // its thread has ended: recycle it when it is empty
    bool is_relieved;         // its thread is gone, and what its nursery held was taken
    uint64_t weighed_events;  // of its events, those that drain_take_load has told
    struct nursery_hold hold; // at the beginning of the pass, if it could not be taken
    uint32_t budget_count;    // how often it had taken one
    uint64_t budget_bytes;    // of its nursery, since what the latest pass has left
    uint64_t given_up[LANE_PENDING_STAMPS]; // what was pending for too long
};

struct drain_process {
    struct aggregator_process *aggregator; // NULL: the slot is not in use
    pid_t pid;                             // as we know it; 0: it was gone before we could learn it
    uint32_t inner_pid;                    // as it knows itself, in
    uint32_t pid_namespace;                // this one
    int pidfd;                             // -1 if there is none: then it is asked by kill(2)
    bool is_found_dead;                    // but not yet dated
    bool is_dead;
    bool is_replaced;      // it is dead, for its process goes on as another image
    bool is_lingering;     // it noted its exit long ago, and lives
    bool is_our_namespace; // its thread ids mean to us what they mean to it
    uint32_t lane_count;
    uint32_t strange_looks; // that found it to be somebody else, one after the other
    uint64_t dead_ms;       // when it was found dead: it did nothing later
    uint64_t end_ms;        // last sign of life so far: its events, and the exit that it noted
    uint64_t end_stamp;     // of the exit that it noted; 0: it did not
    uint64_t gone_stamp;    // a moment at which it had been found dead; 0: it noted its exit
};

struct drain {
    const struct session *session;               // borrowed
    struct aggregator *aggregator;               // borrowed
    int epoll;                                   // owned
    pid_t own_pid;                               // that no recorded process has; 0: any may
    pid_t main_pid;                              // of the program that was started, 0 if none
    struct nursery_tables *scratch;              // owned: a copy of one
    struct drain_lane *lanes[SESSION_MAX_LANES]; // owned; NULL: not in use
    uint32_t
        active[SESSION_MAX_LANES]; // the lanes in use; in front those that this pass still reads
    uint32_t active_count;
    uint32_t unread_count; // of those in front
    struct drain_process processes[SESSION_MAX_PROCESSES];
    uint32_t process_count;
    uint64_t alive_stamp;       // who was not found dead since lived then
    uint64_t latest_stamp;      // no event that there is can have a later one
    uint64_t pending_stamp;     // the first moment of which we did not know all; UINT64_MAX: none
    uint64_t pending_since_ms;  // since then that was the same
    uint64_t next_end_stamp;    // of the dead, at which somebody may end; see merge_lanes
    uint64_t hold_bytes_before; // what each thread could hold in the pass before
    uint64_t hold_bytes;        // what each thread may hold at present
    uint64_t hold_bytes_most;   // and could at most
    bool has_unknown;           // lanes are in use by a process that has not been begun
    bool has_begun;             // processes, in this pass
    bool has_found_dead;        // some of them are found dead and not dated
    bool has_dead;              // some of them are dead
    uint64_t clock_ms;          // of the pass under way
    uint64_t corrupt_lanes;
    uint64_t corrupt_counters;
    uint64_t counters[SESSION_COUNTER_COUNT];       // the session's, as far as they are possible
    uint64_t known_counters[SESSION_COUNTER_COUNT]; // as they stood in the latest pass
    uint64_t ended_events;                          // of lanes that have been recycled
    uint64_t seen_joins; // session_header.join_count at the latest look at the slots
    uint64_t next_slot_scan_ms;
    uint64_t next_thread_check_ms;
    uint64_t settled_ms; // see drain_note_time
    uint64_t noted_ms;
    uint64_t noted_at_ns;
};

// `session` and `aggregator` must outlive it.
enum err drain_init(struct drain *drain,
                    const struct session *session,
                    struct aggregator *aggregator,
                    struct err_info *info) MUST_USE;
void drain_release(struct drain *drain);

// Says what time it is, by the session's clock and by that of the system, before each pass. A
// thread that has done nothing since before `settled_ms`, a session time that was true a
// millisecond ago at least, is taken to stand still.
void drain_note_time(struct drain *drain, uint64_t clock_ms, uint64_t monotonic_ns);

// Looks which processes have died, after it has looked at the session's clock. Before the time of
// the next pass is read.
void drain_find_dead(struct drain *drain);

// Takes for dead who is alive and has nothing to do with the session: a slot may have been
// scribbled over, or its process executes a program that cannot be recorded. Two looks in a row say
// so, for between two images of a process there is neither. Costs a look at /proc for each process.
void drain_find_strangers(struct drain *drain);

// What a process says before it executes a program that will not be recorded.
struct drain_replacement {
    pid_t pid;        // 0: not known
    uint64_t joins;   // images that had joined by then
    uint64_t time_ms; // when it said so
};

// Ends the image that the process had then, if it has another one now: its blocks left with it.
// Before the new image is there, the exec may still fail; so the process's mappings are looked at.
// One that may not be looked at, for it has another identity, ends when its process does. Between
// two passes; clock_ms is that of the last one.
enum err drain_end_replaced(struct drain *drain,
                            const struct drain_replacement *exec,
                            uint64_t clock_ms) MUST_USE;

// One pass at time clock_ms, which must have been read before. `is_last`: nothing is left for a
// next one. Returns in *out_was_busy whether there was anything to do.
// ERR_NO_MEMORY or ERR_LIMIT: the aggregator is full, the recording must end.
enum err drain_pass(struct drain *drain, uint64_t clock_ms, bool is_last, bool *out_was_busy)
    MUST_USE;

// Records counted so far.
uint64_t drain_events(const struct drain *drain);

// What the present lanes brought since they were asked last.
struct lane_load drain_take_load(struct drain *drain);
