// SPDX-License-Identifier: MIT
// thread_stacks: finds the stacks of threads from outside, also of threads without a lane.
//
//   guard   | stack                          descriptor |  something else of the same area
//   A       |                                [A, size]  A + size
//
// Stack pointers come from /proc/PID/task/TID/syscall, for threads that sleep. Where a stack ends
// is in glibc's descriptor of the thread, which is near its end: it holds the address of the guard
// and the size of both. glibc keeps some stacks for the next threads; these have descriptors, too.
// The descriptor is looked for at the end of the area, where a stack of the usual size ends, and
// above the stack pointer. A running thread whose stack is joined with other memory may be missed.
// Context: H, any thread; it is read aside (aside/aside.h). The program may write such numbers
// anywhere: only the memory from the inaccessible area before it up to there counts as a stack
// then.
// Cost: two pages of each area behind an inaccessible one; and if there is such an area, two small
// reads and at most DEPTH_PAGES pages a thread.
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "recorder/memory/memory_areas.h"

// Append the ends of stacks to `tops`, and stack pointers to `pointers`, whose order is that of
// their addresses then. ERR_NO_MEMORY.
enum err thread_stacks_find(pid_t pid,
                            const struct memory_areas *map,
                            const struct memory_source *memory,
                            const struct page_source *pages,
                            struct u64_vec *tops,
                            struct u64_vec *pointers) MUST_USE;
