// SPDX-License-Identifier: MIT
// proc_sampler: resident memory of the recorded processes over time, from /proc.
//
// Every process is asked for its smaps_rollup (statm where that cannot be read) and page faults,
// each 100 ms at first. The samples have a fixed number of places: when they are full, every second
// one goes and the interval doubles, but each process's highest sample always stays. So the memory
// does not follow the run time.
// A process that is gone or may not be read is no error: its last sample stays.
// Context: H, the recorder's main thread. Cost: some 30 us a process and sample, more for processes
// with tens of thousands of mappings, for which the interval grows so that it stays below 1 %.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "host/vec.h"
#include "recorder/book_process.h"
#include "recording/tables.h"

#define PROC_SAMPLER_INTERVAL_MS 100u
#define PROC_SAMPLER_MAX_SAMPLES 4096u

DEFINE_VEC(rss_sample_vec, struct rec_rss_sample);

struct proc_sampler {
    struct rss_sample_vec samples; // owned, ordered by time
    uint64_t interval_ms;
    uint64_t next_ms;
};

void proc_sampler_init(struct proc_sampler *sampler);
void proc_sampler_release(struct proc_sampler *sampler);

// Whether the next round of samples is due.
bool proc_sampler_due(const struct proc_sampler *sampler, uint64_t now_ms);

// What a sample says beside its numbers.
struct proc_sample_facts {
    bool is_confined; // runs under seccomp
};

// Reads one process now; the kernel's own high-water mark goes to its record. Returns its resident
// bytes, 0 if it cannot be read. What takes long, to have them to the page, is left out if a look
// at its whole map `follows` and corrects them.
uint64_t proc_sampler_take(struct proc_sampler *sampler,
                           pid_t pid,
                           struct book_process *process,
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
