// SPDX-License-Identifier: MIT
// drain_process: the process slots of a session, as the drain follows them. Only drain.c uses it.
//
// Each process in a slot is watched through a pidfd; where there is none, it is asked by kill(2).
// A slot is believed as far as it can be checked: a pid that does not exist is a dead process. One
// of another pid namespace is looked for under the pid that it has in ours (pid_lookup.h). Context:
// H, the recorder's main thread.
#pragma once

#include "recorder/ingest/drain.h"

enum {
    DRAIN_TIME_SLACK_MS = 1000, // a program may be ahead of our clock by what a pass takes
};

// What a time that a program wrote is taken for: one that is far ahead of our clock is a lie.
uint64_t drain_process_time(uint64_t written_ms, uint64_t clock_ms);

// Begins all processes whose slots are filled in and new, in the order in which they joined. Ends
// the earlier image of a process that executed another program.
enum err drain_process_begin_new(struct drain *drain, uint64_t clock_ms) MUST_USE;

// Looks who has died.
void drain_process_look_for_dead(struct drain *drain);

// Those that were found dead before clock_ms was read are dead from now on: whatever they and
// others did beside them happened up to then.
void drain_process_date_dead(struct drain *drain, uint64_t clock_ms);

// Ends the dead ones whose lanes are all recycled and whose exit, if they noted one, lies before
// `before_stamp`, and gives their slots back. Sets drain->next_end_stamp to the earliest of later
// exits.
enum err drain_process_end_dead(struct drain *drain, uint64_t before_stamp) MUST_USE;

// Whether the thread still exists. Only for processes in our own pid namespace.
bool drain_process_has_thread(const struct drain_process *process, pid_t thread_id);

// Stops watching; the aggregator keeps what it knows.
void drain_process_forget(struct drain *drain, uint32_t slot);

// Counts all that the lanes of `slot` hold and recycles them. In drain.c.
enum err drain_image(struct drain *drain, uint32_t slot, uint64_t clock_ms) MUST_USE;
