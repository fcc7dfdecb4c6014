// SPDX-License-Identifier: MIT
// hold_budget: what the threads of a session may hold in their nurseries. It bounds the error of
// the peak, and saves nothing.
//
// The recorder does not see what threads hold (nursery.h), so the bound of the peak widens by all
// that they may hold at the moment of the peak. Together this is a 256th of the peak; of a small
// heap it is a little more, because two queues of 16 small blocks, say, could hold nothing
// otherwise. Each thread takes its budget at each of its ticks, and keeps it until its next one,
// however long it sleeps. So the recorder deducts the budgets of the threads that slept since the
// previous pass, and shares the rest among as many threads as were awake recently.
//
// A pass reads the budgets before it counts events. Its events begin before the budget of the
// previous pass was read, because the moment up to which that pass counted was read earlier: both
// budgets count, the larger one. A thread that had several ticks in between may have had others,
// which count with the most that was allowed. Events that a pass leaves to the next one keep their
// budgets, also if their thread has ended by then.
// Trust: the nursery is the program's memory. No budget counts with more than was ever allowed.
// Context: H, the recorder's main thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "session/layout.h"

// The budget of one thread.
struct lane_budget {
    uint32_t count;     // how often the thread had taken one, at the latest pass
    uint64_t bytes;     // the budget at the latest pass
    uint64_t due_bytes; // the largest one of the events that were left to the next pass
};

struct hold_budget {
    uint64_t each_bytes;      // what each thread may hold at present,
    uint64_t before_bytes;    // and could hold in the previous pass,
    uint64_t most_bytes;      // and could hold at most
    uint64_t ended_due_bytes; // due_bytes of threads that ended in the latest pass
    uint32_t recent_awake;    // threads that were awake recently
    // Of the current pass:
    bool leaves_events;          // it leaves events to later ones
    uint32_t awake_count;        // threads that took a budget
    uint64_t idle_bytes;         // budgets of the others
    uint64_t held_at_most_bytes; // by all threads
};

// Begin a pass. leaves_events: it leaves events to later ones that precede the moment of its start.
void hold_budget_begin_pass(struct hold_budget *budget, bool leaves_events);

// Add what one thread may have held. is_empty: its nursery is empty, and all that it sent was read.
void hold_budget_add(struct hold_budget *budget,
                     struct lane_budget *lane,
                     const struct nursery *nursery,
                     bool is_empty);

// End a pass: set each_bytes for threads of a heap with this peak. is_shared: there are several.
void hold_budget_end_pass(struct hold_budget *budget, uint64_t peak_bytes, bool is_shared);

// Note the end of a thread.
static inline void hold_budget_end_thread(struct hold_budget *budget,
                                          const struct lane_budget *lane)
{
    budget->ended_due_bytes += lane->due_bytes;
}
