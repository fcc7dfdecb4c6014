// SPDX-License-Identifier: MIT
// proc_sampler: resident memory of the recorded processes over time, from /proc.
//
//   glance   each 50 ms, statm alone, which costs microseconds: how much is resident
//   sample   each 100 ms at first: smaps_rollup (status where that cannot be read), page faults
//
// Every 100 ms at first the highest of either is stored. There is a fixed number of places: when
// they are full, of every two moments the higher one stays, and so does each process's highest
// sample; then half as many are stored. Glances go on as often, so that no peak of a twentieth of a
// second is missed, however long the run. What a glance does not tell (page faults, areas) is what
// the sample before it said.
// A process that is gone or may not be read is no error: its last sample stays.
// Context: H, the recorder's main thread. Cost: some 5 us a process and glance, 30 us a sample,
// more for processes with tens of thousands of mappings. Where that is more than 0.4 % of a
// processor for glances, or 0.6 % for samples, they are taken less often.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "aggregate/aggregator_process.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

#define PROC_SAMPLER_GLANCE_MS   50u
#define PROC_SAMPLER_INTERVAL_MS 100u
#define PROC_SAMPLER_MAX_SAMPLES 4096u

DEFINE_VEC(rss_sample_vec, struct rec_rss_sample);

// All processes at one time.
struct proc_glance {
    struct rss_sample_vec samples; // owned
    uint64_t rss_bytes;            // sum
};

struct proc_sampler {
    struct rss_sample_vec samples; // owned, ordered by time
    struct proc_glance now;        // under way
    struct proc_glance highest;    // since the latest samples
    uint64_t interval_ms;          // of what is stored
    uint64_t stored_ms;
    uint64_t next_ms; // when samples are due
    uint64_t next_glance_ms;
};

void proc_sampler_init(struct proc_sampler *sampler);
void proc_sampler_release(struct proc_sampler *sampler);

// Whether the next round of glances, or of samples, is due.
bool proc_sampler_glance_due(const struct proc_sampler *sampler, uint64_t now_ms);
bool proc_sampler_due(const struct proc_sampler *sampler, uint64_t now_ms);

// Looks how much of a process is resident.
void proc_sampler_glance(struct proc_sampler *sampler,
                         pid_t pid,
                         const struct aggregator_process *process,
                         uint64_t now_ms);

// The same, when it is known: `shared_bytes` of it are files or shared memory.
void proc_sampler_note_glance(struct proc_sampler *sampler,
                              const struct aggregator_process *process,
                              uint64_t now_ms,
                              uint64_t rss_bytes,
                              uint64_t shared_bytes);

// Ends a round of glances that took `spent_ns`: their sum.
uint64_t proc_sampler_end_glances(struct proc_sampler *sampler, uint64_t now_ms, uint64_t spent_ns);

// Samples follow: stores the highest round of glances since the latest ones, if it is higher.
void proc_sampler_begin_round(struct proc_sampler *sampler, uint64_t now_ms);

// What a sample says beside its numbers.
struct proc_sample_facts {
    bool is_confined; // runs under seccomp
};

// Reads one process now; the kernel's own high-water mark goes to its record. Returns its resident
// bytes, 0 if it cannot be read. What takes long, to have them to the page, is left out if a look
// at its whole map `follows` and corrects them.
uint64_t proc_sampler_take(struct proc_sampler *sampler,
                           pid_t pid,
                           struct aggregator_process *process,
                           uint64_t now_ms,
                           bool follows,
                           struct proc_sample_facts *facts);

// A look at its whole map at that moment found `rss_bytes`: what the sample says from now on.
void proc_sampler_correct(struct proc_sampler *sampler,
                          uint32_t process,
                          uint64_t time_ms,
                          uint64_t rss_bytes);

// Ends a round that began at `now_ms` and took `spent_ns`: plans the next, thins out if full.
void proc_sampler_end_round(struct proc_sampler *sampler, uint64_t now_ms, uint64_t spent_ns);
