// SPDX-License-Identifier: MIT
// urgent_turns: runs a thread that others wait for before all ordinary ones, in short turns.
//
//   begin --> a turn of 4 ms at most --> 1 ms for all others --> a turn ... --> end
//
// Behind thousands of threads that run at the same time, a thread waits for the processor as long
// as all of them need it. With permission (CAP_SYS_NICE, RLIMIT_RTPRIO) it has real-time priority
// (SCHED_FIFO) during its turns; without it, nothing changes. What it starts does not inherit the
// priority (SCHED_RESET_ON_FORK).
// Context: H; one thread, whose scheduling policy is ordinary before and after.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Valid when zeroed.
struct urgent_turns {
    uint64_t began_ns; // of the turn; CLOCK_MONOTONIC
    uint64_t late_until_ns;
    bool is_urgent;
};

// Begin, and return whether the thread is urgent now. Again: nothing happens.
bool urgent_turns_begin(struct urgent_turns *turns);

// To be called between two steps of the work: let the others run if the turn is over.
void urgent_turns_spare_others(struct urgent_turns *turns);

// The thread has slept by itself: its next turn begins.
void urgent_turns_begin_next(struct urgent_turns *turns);

// Note that the thread has the processor at `now_ns`, and could have gone on at `due_ns`.
void urgent_turns_note_wait(struct urgent_turns *turns, uint64_t due_ns, uint64_t now_ns);

// Return whether it had to wait for long in the last ten seconds, as it will again.
bool urgent_turns_is_late(const struct urgent_turns *turns, uint64_t now_ns);

// Again, or without a beginning: nothing happens.
void urgent_turns_end(struct urgent_turns *turns);
