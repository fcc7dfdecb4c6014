// SPDX-License-Identifier: MIT
// aggregator: the profile of a recording while it grows: who holds what, and who ever did.
//
//     events --> live blocks (per process) --> rows, totals, series, peak
//
// Events come in their true order, by the stamps that they have once there are several threads
// (aggregator_thread.stamp). What a thread held back while it was alone may come after its free,
// which then waits for it (pending_frees). What threads are doing at a moment is not known, so the
// peak has a bound (peak_bound). Rules: a realloc is the free of the old and the allocation of the
// new block, and one event; an allocation is temporary if its thread's next event frees it. Pairs
// are allocated and freed within a tick, below the maximum (nursery.h). The peak is that of the sum
// over all processes; a process that ends takes its blocks out of the sum, at a moment that the
// recording tells (left_ms), and its rows never free them. What the last process held stays in the
// series: a recording ends with it, not with 0. Context: H, one thread. Failure: ERR_NO_MEMORY and
// ERR_LIMIT end the recording; what is in the aggregator stays consistent but for the one event.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregate/aggregator_adhoc.h"
#include "aggregate/aggregator_mapping.h"
#include "aggregate/aggregator_process.h"
#include "aggregate/memory_budget.h"
#include "aggregate/observer.h"
#include "aggregate/peak/peak_bound.h"
#include "aggregate/peak_scopes.h"
#include "aggregate/tables/mark_list.h"
#include "aggregate/tables/stack_table.h"
#include "aggregate/tables/thread_table.h"
#include "aggregate/totals/heap_totals.h"
#include "base/err.h"
#include "host/containers/string_table.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

// What many rows may keep of their history, beyond which it becomes coarser: 12 and 2 MiB.
#define AGGREGATOR_CELLS_MAX   (256u << 10)
#define AGGREGATOR_COHORTS_MAX (64u << 10)
#define AGGREGATOR_HELD_MAX    (8u << 20) // bytes that one thread can hold back

DEFINE_VEC(aggregator_process_vec, struct aggregator_process *);

// Recording was stopped at some moment from `from_ms` to `to_ms`.
struct aggregator_stop {
    uint64_t from_ms;
    uint64_t to_ms;
};

DEFINE_VEC(aggregator_stop_vec, struct aggregator_stop);

// What --overflow=sample left out, and what stands for it. All are 0 where every event was
// recorded.
struct aggregator_sampling {
    uint64_t left_out_allocations; // exactly
    uint64_t left_out_bytes;
    uint64_t left_out_frees;       // that were not sent; those that were count in unsampled_frees
    uint64_t forgotten;            // left out, and their frees come nevertheless
    uint64_t unsampled_frees;      // of blocks that were left out
    uint64_t sampled_allocations;  // events that stand for several
    uint64_t stand_in_allocations; // for so many beside themselves
    uint64_t stand_in_bytes;
    uint64_t coarsest_weight; // the most that one stood for
};

struct aggregator {
    struct heap_totals totals; // of all processes; its time is the tick under way
    struct string_table strings;
    struct stack_table stacks;
    struct thread_table threads;
    struct rec_mapping_vec mappings;
    struct rec_adhoc_vec adhoc;
    struct mark_list marks;
    struct aggregator_process_vec processes; // owned; index = index in the recording
    struct map_u64 last_of_pid;              // pid -> index of its latest image
    size_t running_count;                    // processes that have not ended
    struct aggregator_process
        *lingering; // it ended last, and no other one has begun since; or NULL
    struct peak_bound bound;
    uint64_t unknown_frees;
    uint64_t unrecorded_frees;   // of blocks that were allocated while recording was stopped
    uint64_t missed_allocations; // while threads took us for dead
    uint64_t missed_frees;
    struct aggregator_stop_vec stops;
    struct aggregator_sampling sampling;
    struct peak_estimate estimate;  // of what is alive where blocks were left out
    struct observer_list observers; // who else is told of each event
    struct peak_scopes scopes;      // observes while a thread is followed in it
    struct memory_budget budget;
    uint64_t stand_ins;     // of live_blocks, those that are in no live map: others stand for them
    uint64_t waiting_count; // over all processes
    uint64_t seed;          // of the live maps
    uint64_t held_since_ms; // allocations of this tick and later ones may be missing
    uint64_t held_bytes;    // so much of them
    uint64_t stamped_count; // events with stamps
    rec_string libc;
};

// One thread as the aggregator sees it. Zeroed but for what aggregator_thread_begin sets.
struct aggregator_thread {
    struct aggregator_process *process; // borrowed
    uint32_t lane;                      // tells threads apart that run at one time
    uint32_t thread_id;
    uint32_t entry; // in the thread table, REC_NONE until its first stack
    rec_string name;
    uint64_t start_ms;
    uint64_t tick_ms;        // of its latest event
    uint64_t stamp;          // of its next or latest event; 0: none had one
    uint64_t stamped_before; // aggregator.stamped_count when its present tick began
    struct peak_flight flight;
    int64_t left_out_bytes; // its balance of what was left out (session/sampler.h)
    uint64_t grain_bytes;
};

// `seed` should be unknown to the recorded programs.
enum err aggregator_init(struct aggregator *aggregator, uint64_t seed) MUST_USE;
void aggregator_release(struct aggregator *aggregator);

// Nothing will be counted any more: gives back the memory that only counting needs.
void aggregator_seal(struct aggregator *aggregator);

// Recording stops, or has not begun: from here on, there are blocks that were never seen.
enum err aggregator_note_stop(struct aggregator *aggregator, struct aggregator_stop stop) MUST_USE;

// A process joins, or goes on as a new image: then the earlier one is REC_PROCESS_EXECED already.
enum err aggregator_process_begin(struct aggregator *aggregator,
                                  const struct rec_process *what,
                                  struct aggregator_process **out) MUST_USE;

// The process whose image a forked one has: its nearest ancestor that is named, or was not forked;
// else itself.
const struct aggregator_process *
aggregator_process_origin(const struct aggregator *aggregator,
                          const struct aggregator_process *process);

// What a forked process is, as far as it has not said it itself: what its parent is.
void aggregator_process_inherit(const struct aggregator *aggregator,
                                struct aggregator_process *process);

// The module of the process's code that belongs to no file. Each process has its own: what lies at
// an address in one is something else in another.
enum err aggregator_jit_module(struct aggregator *aggregator,
                               struct aggregator_process *process,
                               uint32_t *out) MUST_USE;

// What is known of a process's end.
struct aggregator_process_ending {
    uint64_t end_ms; // its last sign of life
    uint64_t
        gone_stamp; // it was found gone then, so its heap may have lived until then; 0: not later
};

// All its events have been counted, and those of others up to its last sign of life.
enum err aggregator_process_end(struct aggregator *aggregator,
                                struct aggregator_process *process,
                                const struct aggregator_process_ending *ending) MUST_USE;

// Gives up the frees of `process` that have waited too long at now_tick; UINT64_MAX: all of them.
// Done by aggregator_tick and aggregator_process_end.
void aggregator_settle(struct aggregator *aggregator,
                       struct aggregator_process *process,
                       uint64_t now_tick);

void aggregator_thread_begin(struct aggregator_thread *thread,
                             struct aggregator_process *process,
                             uint32_t lane,
                             uint32_t thread_id,
                             uint64_t start_ms);
void aggregator_thread_end(struct aggregator *aggregator, struct aggregator_thread *thread);
enum err aggregator_thread_name(struct aggregator *aggregator,
                                struct aggregator_thread *thread,
                                struct bytes name) MUST_USE;

// The row of this thread and stack; where no row is added any more, that of all that is merged.
enum err aggregator_row(struct aggregator *aggregator,
                        struct aggregator_thread *thread,
                        uint32_t node,
                        uint32_t *out_row) MUST_USE;

// A scope in which the thread's peak is followed begins, and ends (peak_scopes.h).
enum err aggregator_begin_scope(struct aggregator *aggregator,
                                struct aggregator_thread *thread,
                                uint32_t scope) MUST_USE;
uint64_t aggregator_scope_peak(struct aggregator *aggregator,
                               const struct aggregator_thread *thread,
                               uint32_t scope);
void aggregator_end_scope(struct aggregator *aggregator,
                          const struct aggregator_thread *thread,
                          uint32_t scope);

// The recording ends at end_ms, or a snapshot of it is taken then: its slices go on until then,
// whether anything happened or not.
enum err aggregator_extend(struct aggregator *aggregator, uint64_t end_ms) MUST_USE;

// Time has come to tick_ms: all events of earlier ticks have been counted. Going back does nothing.
enum err aggregator_tick(struct aggregator *aggregator, uint64_t tick_ms) MUST_USE;

// No thread holds anything.
void aggregator_clear_holds(struct aggregator *aggregator);

// A thread holds blocks of its tick that will be counted later: since since_ms (UINT64_MAX: it
// holds nothing), and so many bytes of what it held before there were several threads.
void aggregator_add_hold(struct aggregator *aggregator, uint64_t since_ms, uint64_t held_bytes);

// All holds have been added. `budget_bytes`: what threads may hold besides, for which they show no
// maximum. `is_alone`: their thread is the only one, which shows each.
void aggregator_end_holds(struct aggregator *aggregator, uint64_t budget_bytes, bool is_alone);

// Nothing was heard of the thread for a while.
void aggregator_thread_rests(struct aggregator *aggregator, struct aggregator_thread *thread);

// The events. Addresses are not 0; rows are of aggregator_row.
enum err aggregator_allocate(struct aggregator *aggregator,
                             struct aggregator_thread *thread,
                             uint64_t address,
                             uint32_t row,
                             uint64_t size_bytes) MUST_USE;

// One that was held back: allocated after `since`, a stamp, and before any later free of its
// address, of which one may have been counted already.
enum err aggregator_allocate_late(struct aggregator *aggregator,
                                  struct aggregator_thread *thread,
                                  uint64_t address,
                                  uint32_t row,
                                  uint64_t size_bytes,
                                  uint64_t since) MUST_USE;
enum err aggregator_free(struct aggregator *aggregator,
                         struct aggregator_thread *thread,
                         uint64_t address,
                         bool is_temporary) MUST_USE;

// A block that was recorded with a probability of one in 1 << shift, and so stands for that many.
enum err aggregator_allocate_sampled(struct aggregator *aggregator,
                                     struct aggregator_thread *thread,
                                     uint64_t address,
                                     uint32_t row,
                                     uint64_t size_bytes,
                                     uint32_t shift) MUST_USE;

// What a thread says of the blocks that were left out (WIRE_LEFT_OUT).
struct aggregator_balance {
    int64_t bytes;
    uint64_t grain_bytes;
    uint64_t lost_blocks;
    uint64_t lost_bytes;
};
void aggregator_left_out(struct aggregator *aggregator,
                         struct aggregator_thread *thread,
                         const struct aggregator_balance *balance);

// What is alive of all processes: estimated where blocks were left out.
uint64_t aggregator_live_bytes(const struct aggregator *aggregator);

// How many blocks the live maps hold.
static inline uint64_t aggregator_kept_blocks(const struct aggregator *aggregator)
{
    return aggregator->totals.live_blocks - aggregator->stand_ins;
}

// The node that stands for stacks of which nothing is kept.
enum err aggregator_merged_node(struct aggregator *aggregator, uint32_t *out_node) MUST_USE;

// A block that moved, or changed its size.
struct aggregator_move {
    uint64_t from;
    uint64_t to;
    uint64_t size_bytes;
    uint32_t row;
    bool is_temporary; // what lay at `from` was
};
enum err aggregator_reallocate(struct aggregator *aggregator,
                               struct aggregator_thread *thread,
                               const struct aggregator_move *move) MUST_USE;

// `count` > 0 blocks of `bytes` in all, whose sizes are of one bucket, each allocated and freed by
// the thread in its present tick.
enum err aggregator_pairs(struct aggregator *aggregator,
                          uint32_t row,
                          uint32_t count,
                          uint64_t bytes,
                          bool is_temporary) MUST_USE;

// `count` blocks of `bytes` in all were alive in this tick, together with those that are. Whether
// that was a new peak: then row_table_was_at_peak says whose they were.
bool aggregator_high_water(struct aggregator *aggregator,
                           struct aggregator_thread *thread,
                           uint32_t count,
                           uint64_t bytes);

// A tick of the thread itself begins, after aggregator_tick: it holds nothing.
void aggregator_thread_tick(const struct aggregator *aggregator,
                            struct aggregator_thread *thread,
                            uint64_t tick_ms);

// By how much the live bytes of `process` may rise without setting any new maximum.
uint64_t aggregator_margin(const struct aggregator *aggregator,
                           const struct aggregator_process *process);
