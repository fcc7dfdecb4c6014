// SPDX-License-Identifier: MIT
// aggregator: the growing profile of a recording.
//
//     books of threads --> rows, totals, series; the shared sum --> peak
//
// An example: thread A of a process allocates at two stacks, thread B at one. A row is one stack on
// one thread. Threads find the row of an event by the block's word, and say how much of each row
// they allocated and freed (books/aggregator_book.h). All live bytes are one sum, and if it is
// higher than ever, the peak gets the next number. What an event changes is before or after each
// peak, as its thread saw it. So rows add up in any order of threads:
//
//   event                row 1, A: load   row 2, A: parse   row 3, B: work    sum   peak
//                        live  at peak    live  at peak     live  at peak
//   A  a = malloc(100)    100                                                 100   100, number 1
//   B  b = malloc(40)     100                                 40              140   140, number 2
//   A  c = malloc(60)     100               60                40              200   200, number 3
//   A  free(a)              0  100 (3)      60                40              100
//   B  d = malloc(30)       0  100 (3)      60                70   40 (3)     130
//   A  free(c)              0  100 (3)       0   60 (3)       70   40 (3)      70
//   end                     0  100           0   60           70   40          70   200
//
// What the rows held at the peak adds up to it: 100 + 60 + 40 = 200. At the end, the rows that have
// not changed since the peak note what they hold (aggregator_complete_rows). b and d are live:
// leaked. If free(a) is in a later time slice than a = malloc(100), row 1 has a cohort: 1 block of
// 100 bytes from the one slice to the other. The slice of c = malloc(60) has 200 as its highest
// sum.
//
// Rules. A realloc is a free of the old block and an allocation of the new one, and one event. An
// allocation is temporary if the next event of its thread frees it. The peak is the highest sum
// over all processes. A process that ends leaves the sum at a moment that the recording states
// (left_ms); its rows never free its blocks. The series keeps the blocks of the last process, so
// that a recording does not end with 0 live bytes.
//
// Context: H, one thread.
// Failure: ERR_NO_MEMORY and ERR_LIMIT end the recording. The aggregator stays consistent except
// for the one entry that failed.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregate/aggregator_adhoc.h"
#include "aggregate/aggregator_mapping.h"
#include "aggregate/aggregator_process.h"
#include "aggregate/memory_budget.h"
#include "aggregate/peak/peak_scopes.h"
#include "aggregate/rows/realloc_table.h"
#include "aggregate/tables/mark_list.h"
#include "aggregate/tables/stack_table.h"
#include "aggregate/tables/thread_table.h"
#include "aggregate/totals/heap_totals.h"
#include "base/err.h"
#include "host/containers/string_table.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

// Limits of the history of all rows: 12 and 2 MiB. Beyond them the history becomes coarser.
#define AGGREGATOR_CELLS_MAX   (256u << 10)
#define AGGREGATOR_COHORTS_MAX (64u << 10)

struct book_blocks;

DEFINE_VEC(aggregator_process_vec, struct aggregator_process *);

// Recording stopped at some moment between `from_ms` and `to_ms`.
struct aggregator_stop {
    uint64_t from_ms;
    uint64_t to_ms;
};

DEFINE_VEC(aggregator_stop_vec, struct aggregator_stop);

// What sampling did not record, and what the recorded blocks stand for. All fields are 0
// if every event was recorded.
struct aggregator_sampling {
    uint64_t unsampled_allocations; // exact
    uint64_t unsampled_bytes;
    uint64_t unsampled_frees;         // of blocks that were not chosen
    uint64_t sampled_allocations;     // chosen blocks that stand for several
    uint64_t represented_allocations; // allocations that they stand for, themselves excluded
    uint64_t represented_bytes;
    uint64_t max_weight;          // highest sampling weight
    uint64_t lane_interval_bytes; // the longest with which threads chose (sampling_level.h)
};

struct aggregator {
    struct heap_totals totals; // of all processes; now_ms is the present tick
    struct string_table strings;
    struct stack_table stacks;
    struct thread_table threads;
    struct rec_mapping_vec mappings;
    struct rec_adhoc_vec adhoc;
    struct realloc_table reallocs;
    struct mark_list marks;
    struct aggregator_process_vec processes; // owned; indexed as in the recording
    struct map_u64 last_of_pid;              // pid -> index of its latest image
    size_t running_count;                    // processes that have not ended
    // the process that ended last, until another one begins; or NULL
    struct aggregator_process *last_ended;
    uint64_t unknown_frees;
    uint64_t unrecorded_frees;   // frees of blocks that were allocated while recording was stopped
    uint64_t missed_allocations; // while threads took the recorder for dead
    uint64_t missed_frees;
    struct aggregator_stop_vec stops;
    struct aggregator_sampling sampling;
    struct book_blocks *blocks; // borrowed: those that books report; NULL: none
    struct peak_scopes scopes;  // while the peak of a thread is followed
    struct memory_budget budget;
    bool has_book_peak;        // the peak is that of a shared sum:
    uint64_t book_peak_bytes;  // this, until all rows are complete (heap_totals_sum_peaks),
    uint64_t book_error_bytes; // how far it may be off,
    uint64_t book_ghost_bytes; // and, besides, too high: of processes that may have been dead
    rec_string libc;
    uint64_t sample_bytes; // --sample: the interval; 0: none
};

// One thread as the aggregator sees it. aggregator_thread_begin sets some fields; the others begin
// as zero.
struct aggregator_thread {
    struct aggregator_process *process; // borrowed
    uint32_t lane;                      // distinguishes threads that run at the same time
    uint32_t thread_id;
    uint32_t entry; // in the thread table; REC_NONE until its first stack
    rec_string name;
    uint64_t start_ms;
    uint64_t tick_ms; // of its latest event
};

// Initialize an empty aggregator in zeroed memory: to write 60 KB would touch pages that a short
// run does not need.
enum err aggregator_init(struct aggregator *aggregator) MUST_USE;
void aggregator_release(struct aggregator *aggregator);

// Release the memory that only counting needs. No event may follow.
void aggregator_seal(struct aggregator *aggregator);

// Note that recording stopped, or has not begun. Later events may concern blocks whose allocations
// were not recorded.
enum err aggregator_note_stop(struct aggregator *aggregator, struct aggregator_stop stop) MUST_USE;

// Begin a process that joins, or the new image of a process after exec. The earlier image must be
// REC_PROCESS_EXECED by then.
enum err aggregator_process_begin(struct aggregator *aggregator,
                                  const struct rec_process *what,
                                  struct aggregator_process **out) MUST_USE;

// Return the process whose image a forked process has: the nearest ancestor that has a name or was
// not forked; else the process itself.
const struct aggregator_process *
aggregator_process_origin(const struct aggregator *aggregator,
                          const struct aggregator_process *process);

// Fill what a forked process has not reported about itself from its parent.
void aggregator_process_inherit(const struct aggregator *aggregator,
                                struct aggregator_process *process);

// Get the module of the process's code that belongs to no file. Each process has a module of its
// own, because one address means different code in different processes.
enum err aggregator_jit_module(struct aggregator *aggregator,
                               struct aggregator_process *process,
                               uint32_t *out) MUST_USE;

// What is known about the end of a process.
struct aggregator_process_ending {
    uint64_t end_ms;   // its last sign of life
    uint64_t error_ms; // it may have ended as much later
};

// End a process, and advance to its last sign of life. All its events must have been counted, and
// the events of other processes up to that moment.
enum err aggregator_process_end(struct aggregator *aggregator,
                                struct aggregator_process *process,
                                const struct aggregator_process_ending *ending) MUST_USE;

void aggregator_thread_begin(struct aggregator_thread *thread,
                             struct aggregator_process *process,
                             uint32_t lane,
                             uint32_t thread_id,
                             uint64_t start_ms);

// Give a thread that lives an entry before it has recorded anything; it keeps it later. `thread_id`
// is the one by which it will begin. ERR_NO_MEMORY, ERR_LIMIT.
enum err aggregator_thread_expect(struct aggregator *aggregator,
                                  struct aggregator_process *process,
                                  uint32_t thread_id,
                                  struct bytes name) MUST_USE;

// Give a thread its entry, unless it has one.
enum err aggregator_thread_enter(struct aggregator *aggregator, struct aggregator_thread *thread)
    MUST_USE;

// The thread ended at end_ms.
void aggregator_thread_end(struct aggregator *aggregator,
                           struct aggregator_thread *thread,
                           uint64_t end_ms);
enum err aggregator_thread_name(struct aggregator *aggregator,
                                struct aggregator_thread *thread,
                                struct bytes name) MUST_USE;

// Return the number of nodes and rows.
static inline uint64_t aggregator_entries(const struct aggregator *aggregator)
{
    return aggregator->stacks.nodes.len + aggregator->totals.rows.rows.len;
}

// Return whether new stacks are merged now (memory_budget.h).
static inline bool aggregator_is_full(const struct aggregator *aggregator)
{
    return memory_budget_is_full(&aggregator->budget, aggregator_entries(aggregator));
}

// Complete the sums and the peak columns of all rows.
enum err aggregator_complete_rows(struct aggregator *aggregator) MUST_USE;

// Get the row of this thread and stack. If no row may be added any more, get the row of the merged
// stack.
enum err aggregator_row(struct aggregator *aggregator,
                        struct aggregator_thread *thread,
                        uint32_t node,
                        uint32_t *out_row) MUST_USE;

// Begin or end a scope in which the thread's peak is followed (peak_scopes.h).
enum err aggregator_begin_scope(struct aggregator *aggregator,
                                struct aggregator_thread *thread,
                                uint32_t scope) MUST_USE;
uint64_t aggregator_scope_peak(struct aggregator *aggregator,
                               const struct aggregator_thread *thread,
                               uint32_t scope);
void aggregator_end_scope(struct aggregator *aggregator,
                          const struct aggregator_thread *thread,
                          uint32_t scope);

// Extend the slices to end_ms: the end of the recording, or the time of a snapshot.
enum err aggregator_extend(struct aggregator *aggregator, uint64_t end_ms) MUST_USE;

// Advance to tick_ms. All events of earlier ticks have been counted. An earlier time has no effect.
enum err aggregator_tick(struct aggregator *aggregator, uint64_t tick_ms) MUST_USE;

// Count frees whose blocks were never seen. A forked process inherits such blocks. In other
// processes their allocations happened while recording was stopped, if it ever was, or were not
// chosen.
void aggregator_count_unknown(struct aggregator *aggregator,
                              const struct aggregator_process *process,
                              uint64_t count);

// Count that a realloc at `row` changed a block of old_bytes to size_bytes. Its free and its
// allocation are counted by themselves. Only growth to WIRE_GREW_MIN or more counts. `old_bytes` 0:
// unknown.
enum err aggregator_grew(struct aggregator *aggregator,
                         uint32_t row,
                         uint64_t old_bytes,
                         uint64_t size_bytes) MUST_USE;
