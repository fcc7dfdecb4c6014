// SPDX-License-Identifier: MIT
// book_reader: turns what a thread has counted and not sent into the records that it would have
// sent.
//
// There are two cases. The thread is dead, or will send no more: its book is read as it is, and
// `mark` says whether a counter that it was sending was sent. Or the thread sleeps: its book is
// emptied under the book's lock on its behalf. A thread sleeps if the clock has advanced since its
// last event, none of its hooks runs, and both have been so for a while: a hook that begins now
// sees the new time, and takes the lock before anything else. Between a look and the lock the
// thread may begin a tick, in which it needs no lock any more, so there is a second look under it.
//
// Trust: none. Each counter is copied once; the result is decoded and checked as a ring's records.
// Context: H, the recorder's main thread. Never waits.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "session/layout.h"

// Return whether the thread keeps a book. One whose process has no memory for words does not.
static inline bool book_reader_is_kept(const struct lane_header *lane)
{
    return *(const volatile uint32_t *)&lane->keeps_book != 0;
}

// Whether the thread has counted what it has not sent.
bool book_reader_has_counted(const struct lane_header *lane) MUST_USE;

// Return since when the thread may have counted what it has not sent; UINT64_MAX: it has not.
uint64_t book_reader_unsent_since(struct lane_header *lane) MUST_USE;

// Take the lock if the thread has slept since before stable_ms, a time that was read a millisecond
// ago or more. book_reader_take and book_reader_unlock must follow.
bool book_reader_lock(struct lane_header *lane, uint64_t stable_ms) MUST_USE;
void book_reader_unlock(struct lane_header *lane);

// Under the lock: give the memory of an empty book back. Return whether it is empty.
bool book_reader_give_back(struct lane_header *lane) MUST_USE;

// Append what the thread has counted to `out`. `is_alive`: the thread continues, and its book is
// emptied. ERR_NO_MEMORY.
enum err book_reader_take(struct lane_header *lane, bool is_alive, struct u64_vec *out) MUST_USE;
