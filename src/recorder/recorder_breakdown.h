// SPDX-License-Identifier: MIT
// recorder_breakdown: the memory snapshots of all processes at one moment, and whether they hold.
//
// RSS is of the moment when the kernel writes the map; the words of the live blocks are listed
// after that. So the lanes are read once more when the map is there, and later the snapshots are
// judged: if the heap changed much since the map was read, they are doubted.
// Processes that were attached to are looked at from then on, before they have joined.
// All that is read of a process is read aside (recorder_reading.c), in three steps: its map; its
// stacks and what its allocator has; its pages. Others are served meanwhile, and the process may
// end, join or execute another program: after each step it is looked for again.
// Context: H, the recorder's main thread; part of recorder_snapshots.h.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "recorder/recorder_state.h"

// The start of something whose cost is bounded.
struct expense {
    uint64_t began_ns;
    uint64_t processor_ns; // of this thread
    uint64_t served_ns;    // of that for others, by then
    uint64_t aside_ns;     // of threads aside, as the caller adds it up
};
struct expense expense_begin(const struct recorder_state *s);

// Return the processor time, without what served others: the loop would have to do it, too.
// Waiting for it on a busy machine, or for the kernel's lock of a program's memory, costs little,
// but should not take all the time.
uint64_t expense_ns(const struct recorder_state *s, const struct expense *expense);

// A recorded process whose memory can be looked at.
struct living_process {
    struct aggregator_process *process;
    pid_t pid;
    uint32_t slot; // SESSION_MAX_PROCESSES: it was attached to and has not joined
};
DEFINE_VEC(living_process_vec, struct living_process);

// List them, except those that do not let themselves be read. ERR_NO_MEMORY.
enum err recorder_living(const struct recorder_state *s, struct living_process_vec *out) MUST_USE;

// Return whether the process still lives; it may have joined meanwhile, or executed another
// program.
bool recorder_find_again(const struct recorder_state *s, struct living_process *living) MUST_USE;

// What is read of a process for a snapshot. An empty one has pagemap -1.
struct map_reading {
    pid_t pid;
    bool reads_heap;         // what its allocator has is wanted, too
    struct memory_areas map; // owned
    struct u64_vec tops;     // owned; ends of stacks: known ones before, all in order afterwards
    struct u64_vec pointers; // owned; stack pointers of threads that sleep, in order
    struct foreign_heap foreign; // owned
    int pagemap;                 // owned; -1: none
    enum err result;
    uint64_t processor_ns; // of reading
};
void map_reading_release(struct map_reading *reading);

// Read the map of a process aside; then its stacks and its allocator, and open its pagemap. After a
// failure `reading` is empty.
enum err recorder_read_map(struct recorder_state *s, struct map_reading *reading) MUST_USE;
enum err recorder_read_outside(struct recorder_state *s, struct map_reading *reading) MUST_USE;

// Read pages aside; takes `wants` and `pagemap`, and gives them back with ERR_OK.
enum err recorder_read_pages(struct recorder_state *s,
                             int *pagemap,
                             struct page_wants *wants,
                             uint64_t *processor_ns) MUST_USE;

// Sample all processes, read aside. A memory snapshot `follows` or not: it corrects a single
// process; of several it may miss some. *out_is_confined: the main program runs under seccomp.
// Return the sum of their resident bytes.
uint64_t recorder_sample_all(struct recorder_state *s,
                             uint64_t now_ms,
                             bool follows,
                             bool *out_is_confined,
                             uint64_t *processor_ns);

// Take snapshots of all processes; `flags` of the main program's. ERR_NO_MEMORY.
enum err
recorder_breakdown_take(struct recorder_state *s, uint64_t now_ms, uint32_t flags, bool was_asked)
    MUST_USE;

// Doubt the latest snapshots if they do not hold.
void recorder_breakdown_judge(struct recorder_state *s, uint64_t now_ms);

// Judge them by what is known: all is that was before them.
void recorder_breakdown_judge_now(struct recorder_state *s);
