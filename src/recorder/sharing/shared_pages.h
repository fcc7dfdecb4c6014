// SPDX-License-Identifier: MIT
// shared_pages: makes the pages that several processes share count once in a sum of processes.
//
// A page of a file, of shared memory, or of a heap that a fork has not copied yet is in the RSS of
// each process that has it. The kernel says how many bytes of an area have other mappings, and how
// large they are if each page is divided among its mappings (Pss). So the processes together have
// of one file at least
//
//   - the sum of these divided bytes: all of it, unless unrecorded processes map the file, too
//   - what the process with most of it has
//
// The larger one counts. The process that joined first has its pages; a later one repeats them:
//
//   file    parent 256 MiB    child 256 MiB (repeated)    child 256 MiB (repeated)
//
// Anonymous memory counts as one file. All figures of one process alone are as the kernel has them.
//
// Processes are read one after the other. While seven of them touch the same 64 MiB, the first one
// may be read as the only one that has them, the second one with a half, the third one with a
// third, and so on: together 166 MiB. So pages that a process got while others were read count only
// as far as one of the processes must have them. The next figures count what is its own.
// Memory: a claim for each part of a memory snapshot. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/containers/vec.h"
#include "recording/format/tables.h"

// The shared pages of a part of a memory snapshot.
struct shared_claim {
    uint64_t device; // with inode: the file; zeros: anonymous memory
    uint64_t inode;
    uint32_t process; // index: earlier ones have joined earlier
    uint32_t part;    // index in a table of rec_part
    uint64_t shared_bytes;
    uint64_t proportional_bytes; // of shared_bytes: each page divided among its mappings
    uint64_t private_bytes;      // of the part besides: pages that it alone has
    uint64_t late_bytes;         // of all files of the process: since the first process was read
};

DEFINE_VEC(shared_claim_vec, struct shared_claim);

// Add a claim of the same process to the same file.
void shared_claim_add(struct shared_claim *sum, const struct shared_claim *more);

// Whether a process got pages of a file while others were read.
bool shared_pages_are_late(const struct shared_claim_vec *claims);

// Set repeated_bytes of the parts of all snapshots of one moment, and the sums in the snapshots.
// Sort the claims.
void shared_pages_settle(struct shared_claim_vec *claims,
                         struct rec_part *parts,
                         struct rec_memory_snapshot *snapshots);

// A kind of page in the samples of one moment: of each process, by the order of joining.
struct shared_amount {
    uint64_t bytes;
    uint64_t proportional_bytes; // each page divided among its mappings
    uint64_t *repeated_bytes;    // set
};

DEFINE_VEC(shared_amount_vec, struct shared_amount);

// Set what the amounts repeat.
void shared_pages_settle_amounts(const struct shared_amount *amounts, size_t count);
