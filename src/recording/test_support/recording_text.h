// SPDX-License-Identifier: MIT
// recording_text: a recording drawn as text, so that a test's input can be read at a glance.
//
//   # comment; empty lines are skipped
//   process server                      a new process; the next thread belongs to it
//   left 350                            it left the heap, with what it held, at 350 ms
//   thread worker                       a new thread, to which the next stacks belong
//   main;load;parse 10 640 4 256 1 64   outermost first; then its costs, in this order:
//                                         allocations allocated_bytes frees freed_bytes
//                                         temporary temporary_bytes peak_blocks peak_bytes
//                                         own_peak_bytes; those left out are 0
//   @3 5 320 2 128 1                    the last stack in slice 3: allocations allocated_bytes
//                                         frees freed_bytes temporary; its cells in slice order
//   size 9 4 40                         its blocks in size bucket 9: count and bytes
//   life 2 4 40                         the same for its lifetimes
//   cohort 0 5 3 96                     born in slice 0, freed in slice 5 ("-": never): its blocks
//                                         and bytes
//   event main;send;[event sent] 3 512  no stack of the heap: events of this name, and their weight
//
// A frame is [MODULE!]FUNCTION[(FILE:LINE)]; `outer=>inner` is one frame in which inner was inlined
// into outer. Equal texts are one frame. Without `process` or `thread` lines there is one process
// "program" with one thread "main". A repeated stack adds to its row. Totals are summed, the slice
// table is made from the cells (one slice = 100 ms). Context: H; for tests and fixtures.
#pragma once

#include "base/err.h"
#include "recording/write/recording_builder.h"

// Adds what `text` draws to `b`, which must be fresh from recording_builder_init. ERR_INVALID for a
// line that cannot be read; the message names it.
enum err recording_builder_text(struct recording_builder *b,
                                const char *text,
                                struct err_info *info) MUST_USE;

// The whole way: `out` owns its arrays.
enum err recording_from_text(const char *text, struct recording *out, struct err_info *info)
    MUST_USE;
