// SPDX-License-Identifier: MIT
// drain: moves the contents of all lanes into the aggregator, and follows lanes and processes from
// birth to end.
//
// One pass:
//   1. Find the processes that have died: before the time is read, so that all they did is in the
//      past, and before 3, so that their last records are seen.
//   2. Find new lanes and processes.
//   3. Take what idle and dead threads have counted (book_reader).
//   4. Read the write positions of all lanes in one snapshot.
//   5. Count the records of all lanes up to there, lane by lane: what threads count in their books
//      adds up in any order (aggregate/books).
//   6. Recycle lanes that are closed and empty, and the lanes of dead threads and processes. End
//      the processes whose lanes are all recycled.
//
// Threads that have done nothing for a while rest: their lanes are left out of steps 3 to 6, except
// in a full pass, which comes at least every FULL_PASS_MS, and whenever a thread waits for the
// recorder, a thread or process has begun or ended, or a query is open. So thousands
// of idle threads cost the passes for a busy one little. What a resting thread does next is read in
// the next full pass, as if the recorder had slept until then.
//
// When all lanes of a dead process are recycled, it ends in the aggregator, and its slot is reused.
// It ends at the exit that it noted, else where it was last found alive or had its last event,
// whichever is later: it died between then and the look that found it dead. Its heap may have lived
// until that. An exit is noted by the session's clock, which stands still while the recorder is
// stopped: clock_gaps.h has its error.
//
// A process that executes another program joins again in a new slot; its earlier image is dead from
// then on.
// Trust: programs share the slots and lanes. Fields are copied once and checked. A lane that breaks
// the rules is counted, discarded from then on, and recycled when its process ends.
// Context: H, the recorder's main thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "aggregate/aggregator.h"
#include "base/err.h"
#include "recorder/lanes/given_rows.h"
#include "recorder/lanes/lane_reader.h"
#include "recorder/processes/awaited_processes.h"
#include "recorder/session/book_reader.h"
#include "recorder/session/session_clock.h"
#include "recorder/session/session_create.h"

#define DRAIN_FAULTS_MAX 8u

// A lane that broke the rules.
struct drain_fault {
    uint32_t lane;
    uint32_t thread_id;
    pid_t pid;
    struct lane_fault fault;
};

struct drain_lane {
    struct lane_reader reader;
    uint32_t process;         // slot
    bool is_corrupt;          // its contents are ignored from now on
    bool is_done;             // its thread has ended: recycle it when it is empty
    bool is_relieved;         // its book was taken last: its thread is dead, or this is the end
    bool has_given_back;      // its thread rests, and the memory for its next events was given back
    uint64_t snapshot_pos;    // what it had written at the latest memory snapshot,
    uint64_t book_ms;         // since when it had then counted what it had not sent; UINT64_MAX
    uint64_t busy_ms;         // clock_ms of the latest pass that found something of its thread
    uint64_t unsent_since_ms; // at the start of the pass: of its book; UINT64_MAX: it was taken
};

struct drain_process {
    struct aggregator_process *aggregator; // NULL: the slot is not in use
    pid_t pid;              // in our pid namespace; 0: it ended before we could find it
    uint32_t inner_pid;     // in its own pid namespace,
    uint32_t pid_namespace; // which is this one
    int pidfd;              // -1: none, kill(2) is used instead
    bool is_found_dead;     // but its end has no time yet
    bool is_dead;
    bool has_next_image;   // its process continues as another one, which is recorded
    bool has_company;      // another process has been recorded beside it
    bool is_our_namespace; // its thread ids are valid for us
    uint32_t lane_count;
    uint32_t killed_threads; // lanes that were open when it was dead
    uint64_t ended_changes;  // drain_changes_of its ended lanes
    uint32_t strange_checks; // checks in a row that found another process
    uint64_t first_look;     // drain.looks when it was first known
    uint64_t alive_ms;       // when it was found alive; of one with a pidfd: the last time
    uint32_t alive_number;   // of the latest peak of the shared sum before it was found alive
    uint64_t dead_ms;        // when it was found dead: it did nothing later
    uint64_t end_ms;         // last sign of life so far: its events, looks at it, its noted exit
    bool is_dated;           // end_ms is its noted exit, or its exec
    uint64_t image;          // proc_text_image at its latest sample; 0: not known
    uint64_t image_ms;       // the time of that
    bool has_other_image;    // a later sample has another one
    uint64_t other_image_ms; // when that one was found not to have joined; 0: it was not
    struct given_rows given; // owned
};

struct drain {
    const struct session *session; // borrowed
    struct session_clock *clock;   // borrowed; NULL: none runs, the session's word is never late
    struct aggregator *aggregator; // borrowed
    int epoll;                     // owned
    pid_t own_pid;                 // no recorded process has it; 0: any may
    pid_t main_pid;                // of the program that was started, 0 if none
    struct awaited_process_vec awaited;
    uint32_t left_number; // of the peak when the process that is ending left the sum; or 0
    struct drain_lane *lanes[SESSION_MAX_LANES]; // owned; NULL: not in use
    uint32_t active[SESSION_MAX_LANES];          // the lanes in use; those that rest come last
    uint32_t active_count;
    uint32_t awake_count;
    // By slot. Those behind slot_count were never in use.
    struct drain_process processes[SESSION_MAX_PROCESSES];
    uint32_t process_count;
    uint32_t slot_count;
    uint32_t main_slot; // of the latest image of main_pid; SESSION_MAX_PROCESSES: none has joined
    uint64_t looked_ms; // processes that were not found dead lived then,
    uint32_t looked_number; // after this peak of the shared sum,
    uint64_t looks;         // when it was looked so often
    bool has_unknown;       // an unknown process has lanes in use
    bool has_begun;         // processes have begun in this pass
    bool has_found_dead;    // some processes are found dead and have no time of death
    bool has_dead;          // some processes are dead
    bool has_queries;       // some threads await an answer
    uint64_t passes;        // number of them
    uint64_t clock_ms;      // of the current pass
    uint64_t corrupt_lanes;
    struct drain_fault faults[DRAIN_FAULTS_MAX]; // of the first of them
    uint64_t corrupt_counters;
    uint64_t counters[SESSION_COUNTER_COUNT];       // the session's, up to what is possible
    uint64_t known_counters[SESSION_COUNTER_COUNT]; // as read in the latest pass
    uint64_t ended_events;                          // of recycled lanes
    uint64_t seen_joins; // session_header.join_count at the latest scan of the slots
    uint64_t next_slot_scan_ms;
    uint64_t next_thread_check_ms;
    uint32_t checked_lanes; // the fewest active ones since the latest check of the threads
    uint32_t checks_left;   // active lanes whose threads that check has still to look for
    bool gives_back;        // so many lanes are in use that those of resting threads give back
    bool is_full;           // of the latest pass: it has looked at each lane
    uint64_t full_ms;       // clock_ms of the latest full pass,
    uint64_t busy_ms;       // and of the latest one that found events
    uint32_t full_wake;     // recorder_wake before it
    uint32_t full_ended;    // ended_lanes before it
    uint64_t read_ms;       // what threads did before has been read
    uint64_t stable_ms;     // see drain_note_time
    uint64_t noted_ms;
    uint64_t noted_at_ns;
};

// `drain` is zeroed: most of it is never touched in a short run. `session` and `aggregator` must
// outlive it.
enum err drain_init(struct drain *drain,
                    const struct session *session,
                    struct aggregator *aggregator,
                    struct err_info *info) MUST_USE;
void drain_release(struct drain *drain);

// Set the time of the session's clock and of the system before each pass. A thread without events
// since `stable_ms` counts as idle; stable_ms is a session time that was current a millisecond
// ago or more.
void drain_note_time(struct drain *drain, uint64_t clock_ms, uint64_t monotonic_ns);

// Find the processes that have died. Reads the session's clock first. Call it before the time of
// the next pass is read.
void drain_find_dead(struct drain *drain);

// Declare processes dead that live but have nothing to do with the session: their slot may have
// been overwritten, or they execute a program that cannot be recorded. Two checks in a row must
// agree, because a process between two images is in neither. `may_map` says whether a process maps
// the session; it may run passes meanwhile.
void drain_find_strangers(struct drain *drain,
                          bool (*may_map)(void *context, pid_t pid),
                          void *context);

// The note of a process before it executes a program that will not be recorded, or is followed.
struct drain_replacement {
    pid_t pid;        // 0: not known
    uint64_t joins;   // images that had joined by then
    uint64_t time_ms; // of the note
};

// Return whether the process has an image of before the note. The exec may still fail, so whether
// that has been replaced shows in the process's mappings.
bool drain_has_replaceable(const struct drain *drain, const struct drain_replacement *exec)
    MUST_USE;

// End the image that the process had before the note: it has another one now, and its blocks left
// with it. Call it between two passes; clock_ms: of the last one.
enum err drain_end_replaced(struct drain *drain,
                            const struct drain_replacement *exec,
                            uint64_t clock_ms) MUST_USE;

// End the image in the slot, whose other_image_ms is set: no recorded one has followed it. It ended
// between image_ms and that. Call it between two passes.
enum err drain_end_silent(struct drain *drain, uint32_t slot, uint64_t clock_ms) MUST_USE;

// Run one pass at time clock_ms, which the caller has read before. `is_last`: leave nothing for a
// next pass. *out_was_busy: there was anything to do. ERR_NO_MEMORY or ERR_LIMIT: the aggregator is
// full, the recording must end.
enum err drain_pass(struct drain *drain, uint64_t clock_ms, bool is_last, bool *out_was_busy)
    MUST_USE;

// Merge the rarest stacks (aggregate/stack_pruning.h), between two passes. ERR_NO_MEMORY,
// ERR_LIMIT.
enum err drain_merge_stacks(struct drain *drain) MUST_USE;

// Return whether the latest pass was full and has counted everything, no thread is in an event, and
// none holds a block.
bool drain_is_quiet(const struct drain *drain);

// Return whether some process has threads that cannot wake the recorder (recorder_wake.h).
bool drain_has_confined(const struct drain *drain);

// Return whether everything that the threads of the process in `slot` have done has been counted.
bool drain_has_counted(const struct drain *drain, uint32_t slot);

// Return the number of records counted so far.
uint64_t drain_events(const struct drain *drain);

// Return how often live blocks of the process in a slot have come or gone, at most.
uint64_t drain_changes_of(const struct drain *drain, uint32_t slot);
