// SPDX-License-Identifier: MIT
// rss_breakdown: what the resident memory consists of, over time.
//
// Each process is sampled on its own, at its own moments. The rss_breakdown is their sum: at every
// sample each process counts with its latest one, from its first until it ends. Beside it stands
// what the heap held in that time slice, and what of the anonymous memory is beyond that.
//
// A split says whose every resident page is: at the highest moment that was looked at, at the last
// one, and when somebody asked. Its kinds add up to its RSS exactly; what is not known of anything
// is a kind of its own. Looks between them are known by their sums only. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/model/profile.h"

struct rss_breakdown_sample {
    uint64_t time_ms;
    uint64_t rss_bytes;
    uint64_t anonymous_bytes;
    uint64_t file_bytes;
    uint64_t shmem_bytes;
    uint64_t swap_bytes;
    uint64_t minor_faults; // of the processes that run, since they began
    uint64_t major_faults;
    uint64_t break_bytes;  // virtual: the area of brk
    uint64_t data_bytes;   // virtual: private and writable
    uint64_t mapped_bytes; // virtual: by the programs' own calls
    uint64_t live_bytes;   // if has_live
    uint64_t other_anonymous_bytes;
    bool has_live;
};

DEFINE_VEC(rss_breakdown_sample_vec, struct rss_breakdown_sample);

// A mapping of one process, or those of one name and stack together.
struct rss_breakdown_part {
    uint32_t kind;    // enum rec_part_kind
    uint32_t process; // index
    uint32_t node;    // who mapped it, or REC_NONE
    rec_string path;  // of a file, or the kernel's name
    uint32_t areas;
    bool is_estimate;
    uint64_t virtual_bytes;
    uint64_t rss_bytes;
    uint64_t swap_bytes;
};

DEFINE_VEC(rss_breakdown_part_vec, struct rss_breakdown_part);

// All processes at one moment.
struct rss_breakdown_split {
    uint64_t time_ms;
    uint32_t flags;     // enum rec_memory_snapshot_flags of any of them
    uint32_t processes; // looked at
    uint64_t rss_bytes;
    uint64_t swap_bytes;
    uint64_t requested_bytes;            // in live heap blocks, resident or not
    uint64_t bytes[REC_PART_KINDS + 1];  // by kind; 0 is not used
    struct rss_breakdown_part_vec parts; // owned; by kind, the largest first. Empty: sums only
};

DEFINE_VEC(rss_breakdown_split_vec, struct rss_breakdown_split);

struct rss_breakdown {
    struct rss_breakdown_sample_vec samples; // owned; in order of time
    struct rss_breakdown_split_vec splits;   // owned; in order of time
    uint64_t peak_rss_bytes; // of the samples, or what a process says of itself if higher
    uint64_t peak_rss_ms;
};

// Of all processes together, or of those with process id `pid` if it is not 0; those have no live
// bytes unless they are the only one.
enum err rss_breakdown_build(const struct profile *profile, uint32_t pid, struct rss_breakdown *out)
    MUST_USE;
void rss_breakdown_release(struct rss_breakdown *rss_breakdown);

// What of the samples is known: of a recording of another tool perhaps nothing but their RSS.
struct rss_breakdown_knows {
    bool kinds; // anonymous, file, shmem
    bool faults;
    bool areas; // break, data, mapped
};
struct rss_breakdown_knows rss_breakdown_knows(const struct rss_breakdown *rss_breakdown);

// Whether a split shows what the highest RSS consisted of: it was taken at 95 % of that or more.
// Else it is only the highest moment that was looked at.
bool rss_breakdown_is_of_peak(const struct rss_breakdown *rss_breakdown,
                              const struct rss_breakdown_split *split);

// The split at the highest moment, and the last one; NULL if nobody looked.
const struct rss_breakdown_split *rss_breakdown_peak(const struct rss_breakdown *rss_breakdown);
const struct rss_breakdown_split *rss_breakdown_last(const struct rss_breakdown *rss_breakdown);

// How long before the end of the recording that was.
uint64_t rss_breakdown_split_age_ms(const struct profile *profile,
                                    const struct rss_breakdown_split *split);

// Whether the bytes of `kind` are an estimate in this split.
bool rss_breakdown_is_estimate(const struct rss_breakdown_split *split, uint32_t kind);

// The stack of a part, innermost first: locations of the code index, and whether each is inlined
// into the next. Appends nothing if it is not known.
enum err rss_breakdown_stack(const struct profile *profile,
                             uint32_t node,
                             struct u32_vec *locations,
                             struct u32_vec *inlined) MUST_USE;

// What a kind is called: for programs, and for people.
struct rss_breakdown_kind {
    const char *key;
    const char *phrase;
};
const struct rss_breakdown_kind *rss_breakdown_kind(uint32_t kind);
