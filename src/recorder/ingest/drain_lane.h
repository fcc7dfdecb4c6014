// SPDX-License-Identifier: MIT
// drain_lane: one lane in a pass of the drain, and the book of its thread. Only drain.c uses it.
//
// A lane that breaks the rules is distrusted: counted once, and discarded from then on. The book
// of its thread is taken when the thread sleeps or has ended (book_reader.h).
// Context: H, the recorder's main thread.
#pragma once

#include "recorder/ingest/drain.h"

void drain_lane_distrust(struct drain *drain, struct drain_lane *lane);

// Count the lane's events. An error in the lane is not an error of the drain. ERR_NO_MEMORY,
// ERR_LIMIT.
enum err drain_lane_run(struct drain *drain, struct drain_lane *lane, uint64_t clock_ms) MUST_USE;

// Take what the lane counts without sending it (lane_counters.h). False: the lane broke the rules.
bool drain_lane_note_unsampled(struct drain *drain, struct drain_lane *lane) MUST_USE;

// Take the book. is_alive: the thread may still run. ERR_NO_MEMORY.
enum err drain_lane_take(struct drain *drain, struct drain_lane *lane, bool is_alive) MUST_USE;

// Take the book if the thread will not send it itself in time. Note since when it has counted what
// it has not sent. ERR_NO_MEMORY.
enum err drain_lane_relieve(struct drain *drain, struct drain_lane *lane, bool is_last) MUST_USE;

// Return whether the lane's thread has ended.
bool drain_lane_is_deserted(const struct drain *drain, const struct drain_lane *lane);

// Return whether one of the thread's hooks records.
bool drain_lane_is_in_hook(const struct drain_lane *lane);

// Whether the thread has counted events in its book that it has not sent.
bool drain_lane_has_book(const struct drain_lane *lane);

// Return whether the thread may be in an event, or has sent some that have not been counted.
bool drain_lane_is_in_event(const struct drain_lane *lane);

// Return whether the lane may be left out of passes that are not full: its thread keeps a book, and
// nothing of it has been found for a while. Call it after each full pass.
bool drain_lane_may_rest(const struct drain *drain, struct drain_lane *lane);

// Give back the memory that the lane of a resting thread has for its next events. False: it must
// wait, because the thread may have begun one.
bool drain_lane_give_back(const struct drain *drain, struct drain_lane *lane) MUST_USE;

// Return whether the lane's thread has ended and all that it did has been counted.
bool drain_lane_is_finished(struct drain *drain, struct drain_lane *lane);
