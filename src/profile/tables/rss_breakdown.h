// SPDX-License-Identifier: MIT
// rss_breakdown: the parts of resident memory, over time.
//
// The samples of one moment are of all processes that could be read then. The breakdown is their
// sum: at every moment, each process counts with its latest sample, from its first sample until it
// ends. Pages that several processes share count once in the sum of all, and fully for one process.
// Each moment also has the heap's live bytes in that time slice, and how much anonymous memory
// exceeds them.
//
// A split divides all resident pages by kind. Splits exist for the highest memory snapshot, for the
// last one, and for those made on request. The kinds of a split add up to its RSS exactly; pages of
// unknown origin are a kind of their own. Of other snapshots only the sums by kind exist. Context:
// H.
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
    uint64_t doubted_bytes; // rss_bytes may be higher by so much, see rec_rss_sample
    uint64_t swap_bytes;
    uint64_t minor_faults; // of the running processes, since their start
    uint64_t major_faults;
    uint64_t break_bytes;  // virtual size of the brk area
    uint64_t data_bytes;   // virtual size of private writable mappings
    uint64_t mapped_bytes; // virtual size of the programs' own mappings
    uint64_t live_bytes;   // valid if has_live
    uint64_t other_anonymous_bytes;
    bool has_live;
};

DEFINE_VEC(rss_breakdown_sample_vec, struct rss_breakdown_sample);

// A mapping of one process, or all mappings of one name and stack.
struct rss_breakdown_part {
    uint32_t kind;    // enum rec_part_kind
    uint32_t process; // index
    uint32_t node;    // the stack that mapped it, or REC_NONE
    rec_string path;  // of a file, or the kernel's name for it
    uint32_t areas;
    bool is_estimate;
    uint64_t virtual_bytes;
    uint64_t rss_bytes;
    uint64_t swap_bytes;
    rec_string allocator;    // of heap: the module whose allocator has it; 0: unknown
    uint64_t released_bytes; // of kept memory: what a release would return
    uint64_t huge_bytes;     // in huge pages, and pages of these that hold only zeros: estimates
    uint64_t blank_bytes;
};

DEFINE_VEC(rss_breakdown_part_vec, struct rss_breakdown_part);

// What the blocks of one call site on sparse pages of the heap keep resident.
struct rss_breakdown_survivor {
    uint32_t node;     // one of its stacks
    uint32_t location; // call site, or REC_NONE without a stack
    uint64_t blocks;
    uint64_t block_bytes; // requested
    uint64_t held_bytes;  // free bytes on the pages of these blocks: would go back with them
    uint64_t oldest_ms;   // births
    uint64_t newest_ms;
};

DEFINE_VEC(rss_breakdown_survivor_vec, struct rss_breakdown_survivor);

// All processes at one time.
struct rss_breakdown_split {
    uint64_t time_ms;
    uint32_t flags;     // enum rec_memory_snapshot_flags that any of them has
    uint32_t processes; // in the snapshot
    bool knows_release; // of each of them, what a release of its free memory would return
    uint64_t rss_bytes;
    uint64_t repeated_bytes; // not in rss_bytes: pages that count for another process
    uint64_t swap_bytes;
    uint64_t requested_bytes;           // in live heap blocks, resident or not
    uint64_t bytes[REC_PART_KINDS + 1]; // by kind; index 0 is unused
    uint64_t empty_page_bytes;          // with the next two: estimates, see rec_memory_snapshot
    uint64_t sparse_page_bytes;
    uint64_t sparse_block_bytes;
    struct rss_breakdown_part_vec parts; // owned; by kind, largest first; empty if only sums exist
    struct rss_breakdown_survivor_vec survivors; // owned; by call site, the largest first
};

DEFINE_VEC(rss_breakdown_split_vec, struct rss_breakdown_split);

struct rss_breakdown {
    struct rss_breakdown_sample_vec samples; // owned; by time
    struct rss_breakdown_split_vec splits;   // owned; by time
    uint64_t peak_rss_bytes; // of the samples, or a process's own figure if that is higher
    uint64_t peak_rss_ms; // of the highest sample, or the end of the process that was well above it
    uint64_t peak_rss_at_most; // more than peak_rss_bytes if some of a moment is doubted
};

// Build the breakdown of all processes, or of those with process id `pid` if it is not 0. The
// latter have live bytes only if they are the only process.
enum err rss_breakdown_build(const struct profile *profile, uint32_t pid, struct rss_breakdown *out)
    MUST_USE;
void rss_breakdown_release(struct rss_breakdown *rss_breakdown);

// Which figures the samples have; a recording of another tool may have only RSS.
struct rss_breakdown_knows {
    bool kinds; // anonymous, file, shmem
    bool faults;
    bool areas; // break, data, mapped
};
struct rss_breakdown_knows rss_breakdown_knows(const struct rss_breakdown *rss_breakdown);

// Whether a split shows the highest RSS: it was taken at 95 % of the highest RSS or more. Else it
// is only the highest memory snapshot.
bool rss_breakdown_is_of_peak(const struct rss_breakdown *rss_breakdown,
                              const struct rss_breakdown_split *split);

// The split at the highest snapshot, and the last split; NULL without snapshots.
const struct rss_breakdown_split *rss_breakdown_peak(const struct rss_breakdown *rss_breakdown);
const struct rss_breakdown_split *rss_breakdown_last(const struct rss_breakdown *rss_breakdown);

// The time from the split to the end of the recording.
uint64_t rss_breakdown_split_age_ms(const struct profile *profile,
                                    const struct rss_breakdown_split *split);

// Whether parts of `kind` are the heap's.
bool rss_breakdown_is_heap(uint32_t kind);

// Whether the bytes of `kind` are an estimate in this split.
bool rss_breakdown_is_estimate(const struct rss_breakdown_split *split, uint32_t kind);

// Append the stack of a part, innermost first: locations of the code index, and whether each is
// inlined into the next. Append nothing if the stack is unknown.
enum err rss_breakdown_stack(const struct profile *profile,
                             uint32_t node,
                             struct u32_vec *locations,
                             struct u32_vec *inlined) MUST_USE;

// Return the call site that mapped the part, REC_NONE if the part is known by its path.
uint32_t rss_breakdown_location(const struct profile *profile,
                                const struct rss_breakdown_part *part);

// The parts that a list does not show.
struct rss_breakdown_rest {
    size_t count;
    uint64_t rss_bytes;
};

// List the resident parts of one kind, largest first, at most `limit` of them: those of one call
// site, or of one path, of all processes as one. *out_rest sums up the others. ERR_NO_MEMORY.
enum err rss_breakdown_top_parts(const struct profile *profile,
                                 const struct rss_breakdown_split *split,
                                 uint32_t kind,
                                 size_t limit,
                                 struct rss_breakdown_part_vec *out,
                                 struct rss_breakdown_rest *out_rest) MUST_USE;

// The name of a kind: in JSON, and in the report.
struct rss_breakdown_kind {
    const char *key;
    const char *phrase;
};
const struct rss_breakdown_kind *rss_breakdown_kind(uint32_t kind);
