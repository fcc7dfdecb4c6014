// SPDX-License-Identifier: MIT
// proc_sampler: resident memory of the recorded processes over time, from /proc.
//
//   glance   each 50 ms, statm alone, some microseconds: resident bytes
//   sample   each 100 ms at first: smaps_rollup (status if that is unreadable), page faults
//
// Every 100 ms at first the highest of either is stored. The number of places is fixed. When they
// are full, the higher one of every two moments stays, and the highest sample of each process; then
// half as many are stored. Glances stay as frequent, so a run of any length misses no peak of a
// twentieth of a second. Fields that a glance lacks (page faults, areas) come from the previous
// sample. A process that has ended or must not be read is not an error: its last sample stays.
// While the recorder rests (recorder_rest.c) and the sum of the glances has been steady for a
// second, glances come each second and samples twice a minute. So a program that touches memory
// meanwhile is seen a second later, and from then on as above. Its peak is the kernel's own (VmHWM)
// as ever. A process that ends between two samples notes the kernel's figure itself as it exits
// (drain_process.c).
// Context: H, the recorder's main thread.
// Pages that several processes share count once in a sum (shared_pages.h): samples know how many
// they are from smaps_rollup; a glance takes the share of them from the process's latest sample.
// What a process got since then, or while others were read, is doubted (doubted_pages.h); if that
// is much, samples follow at once. They end the doubt about the moments before, too: processes had
// no more shared pages together than they have now, and have lost since then.
// Cost: some 5 us a process and glance, 30 us a sample, more for processes with tens of thousands
// of mappings. Glances that cost more than 0.4 % of a processor, or samples that cost more than
// 0.6 %, become less frequent; with --sample a quarter of that.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "aggregate/aggregator_process.h"
#include "host/containers/vec.h"
#include "recorder/samples/proc_reading.h"

#define PROC_SAMPLER_GLANCE_MS      50u
#define PROC_SAMPLER_INTERVAL_MS    100u
#define PROC_SAMPLER_REST_GLANCE_MS 1000u
#define PROC_SAMPLER_REST_MS        30000u
#define PROC_SAMPLER_MAX_SAMPLES    4096u

DEFINE_VEC(rss_sample_vec, struct rec_rss_sample);

// A sample of a round that has not been settled.
struct unsettled_sample {
    struct rec_rss_sample sample;
    struct aggregator_process *process;
    uint64_t proportional_anonymous_bytes; // as Pss
    uint64_t proportional_file_bytes;
    uint64_t proportional_shmem_bytes;
    uint64_t late_bytes; // left out of the two
};

DEFINE_VEC(unsettled_sample_vec, struct unsettled_sample);

// All processes at one time.
struct proc_glance {
    struct rss_sample_vec samples; // owned
    uint64_t rss_bytes;            // sum
    uint64_t doubted_bytes;        // sum
    uint64_t shared_bytes;         // sum of the shared pages that count
    uint64_t most_shared_bytes;    // of one process
};

struct proc_sampler {
    struct rss_sample_vec samples;     // owned, by time
    struct unsettled_sample_vec round; // owned; being taken
    struct proc_glance now;            // being taken
    struct proc_glance highest;        // since the latest samples
    uint64_t interval_ms;              // between stored moments
    uint64_t stored_ms;
    uint64_t next_ms;    // when samples are due
    uint64_t affords_ms; // when the cost of the latest samples is compensated
    uint64_t next_glance_ms;
    uint64_t steady_bytes; // about the sum of the glances since
    uint64_t moved_ms;     // this moment
    bool is_resting;       // the recorder rests, and
    bool is_steady;        // the sum does not move
    uint32_t thrift_bits;  // looks take 1 / 2^thrift_bits of their usual share of a processor
};

void proc_sampler_init(struct proc_sampler *sampler);
void proc_sampler_release(struct proc_sampler *sampler);

// Return whether the next round of glances, or of samples, is due.
bool proc_sampler_glance_due(const struct proc_sampler *sampler, uint64_t now_ms);
bool proc_sampler_due(const struct proc_sampler *sampler, uint64_t now_ms);

// Set whether the recorder rests.
void proc_sampler_set_rest(struct proc_sampler *sampler, bool is_resting, uint64_t now_ms);

static inline bool proc_sampler_is_at_rest(const struct proc_sampler *sampler)
{
    return sampler->is_resting && sampler->is_steady;
}

// Read the resident bytes of a process.
void proc_sampler_glance(struct proc_sampler *sampler,
                         pid_t pid,
                         struct aggregator_process *process,
                         uint64_t now_ms);

// Note the files and shared memory that a process has now, as a glance does. Return how many bytes
// it has more than when that was last noted.
void proc_sampler_note_shared(pid_t pid, struct aggregator_process *process);
uint64_t proc_sampler_late_bytes(pid_t pid, const struct aggregator_process *process);

// Note known resident bytes of a process; `shared_bytes` of them are files or shared memory.
void proc_sampler_note_glance(struct proc_sampler *sampler,
                              const struct aggregator_process *process,
                              uint64_t now_ms,
                              uint64_t rss_bytes,
                              uint64_t shared_bytes);

// End a round of glances that took `spent_ns`. Return their sum. Samples may be due then.
uint64_t proc_sampler_end_glances(struct proc_sampler *sampler, uint64_t now_ms, uint64_t spent_ns);

// Begin a round of samples: store the highest round of glances since the latest samples, if it is
// higher.
void proc_sampler_begin_round(struct proc_sampler *sampler, uint64_t now_ms);

// Add what was read of a process to the round; its record gets the high-water mark.
void proc_sampler_put(struct proc_sampler *sampler,
                      const struct proc_reading *reading,
                      struct aggregator_process *process,
                      uint64_t now_ms);

// Store the samples of a round. Return the sum of their resident bytes; pages that several
// processes share count once.
uint64_t proc_sampler_settle(struct proc_sampler *sampler);

// Replace the resident bytes of the sample at that moment by those of a memory snapshot. `is_late`:
// processes got shared pages while snapshots were taken, so that it may count too few.
void proc_sampler_correct(struct proc_sampler *sampler,
                          const struct rec_memory_snapshot *snapshot,
                          bool is_late);

// End a round that began at `now_ms` and took `spent_ns`: plan the next one, drop moments if full.
void proc_sampler_end_round(struct proc_sampler *sampler, uint64_t now_ms, uint64_t spent_ns);
