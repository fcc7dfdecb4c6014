// SPDX-License-Identifier: MIT
// recording_text: a recording as text, so that a test's input is readable.
//
//   # comment; empty lines are skipped
//   process server                      a new process; the next thread belongs to it
//   left 350                            it left the heap with its live blocks at 350 ms
//   thread worker                       a new thread, to which the next stacks belong
//   main;load;parse 10 640 4 256 1 64   outermost first; then its costs, in this order:
//                                         allocations allocated_bytes frees freed_bytes
//                                         temporary temporary_bytes peak_blocks peak_bytes
//                                         own_peak_bytes; omitted ones are 0
//   @3 5 320 2 128 1                    the last stack in slice 3: allocations allocated_bytes
//                                         frees freed_bytes temporary; its cells in slice order
//   size 9 4 40                         its blocks in size bucket 9: count and bytes
//   life 2 4 40                         in lifetime bucket 2: count and bytes
//   cohort 0 5 3 96                     born in slice 0, freed in slice 5 ("-": never): its blocks
//                                         and bytes
//   realloc 3 8192 4096 8192            3 of its reallocs grew blocks: bytes moved, bytes added,
//                                         largest block
//   event main;send;[event sent] 3 512  events of this name and their weight, outside of the heap
//
// A frame is [MODULE!]FUNCTION[(FILE:LINE)]; `outer=>inner` is one frame in which inner was inlined
// into outer. Equal texts are one frame. Without `process` or `thread` lines the recording has one
// process "program" with one thread "main". A repeated stack adds to its row. The totals are sums
// of the rows. The slice table comes from the cells (one slice = 100 ms). Context: H; for tests and
// fixtures.
#pragma once

#include "base/err.h"
#include "recording/write/recording_builder.h"

// Add the stacks of `text` to `b`, which must be fresh from recording_builder_init. ERR_INVALID for
// a malformed line; the message names it.
enum err recording_builder_text(struct recording_builder *b,
                                const char *text,
                                struct err_info *info) MUST_USE;

// Make the table of `count` slices from the cells. The blocks of a process that leaves the heap
// leave with it.
enum err recording_builder_slices(struct recording_builder *b, size_t count, uint64_t slice_ms)
    MUST_USE;

// Make a recording from `text`. `out` owns its arrays.
enum err recording_from_text(const char *text, struct recording *out, struct err_info *info)
    MUST_USE;
