// SPDX-License-Identifier: MIT
// rss_split: makes the RSS breakdown of a process: the parts of one memory snapshot.
//
// Each piece of the map (rss_pieces) gets its share of its area's figures in smaps. If an area has
// several pieces, pagemap says which pages of each are resident. In the allocator's pieces the live
// blocks are walked. The resident part of the blocks is live. The rest of their extents, as glibc's
// malloc rounds requests, is rounding. The allocator keeps the remainder.
//
//   resident pages of the heap   |##########|....|####......|##|..........|
//                                 live       rounding        live  kept
//
// Sums are exact by construction: shares never exceed their area, and the remainder goes to "kept".
// Estimates are marked: the border between rounding and kept always (other allocators round
// differently), and all three if the pages could not be read.
//
// Where pages of the heap are almost empty, their survivors are listed (survivors.h).
//
// Others are served between the steps of a walk over many blocks, and blocks may change then. The
// walk goes on, and visits each block once that was there all the time. Of the others it has some:
// the snapshot is an estimate. If more than a sixteenth of the blocks changed, what a release would
// return and what is sparse is unknown. If the process goes meanwhile, its split is worthless.
//
// Cost: a read of pagemap for the heap and cut areas, two walks over the live blocks, or three with
// sparse pages. Memory: of resident_pages.h and survivors.h for these areas. Areas whose pages are
// unknown are estimated.
// Context: H.
#pragma once

#include "base/err.h"
#include "host/containers/string_table.h"
#include "host/containers/vec.h"
#include "recorder/memory/rss_pieces.h"
#include "recorder/memory/survivors.h"
#include "recorder/sharing/shared_pages.h"

DEFINE_VEC(rec_memory_snapshot_vec, struct rec_memory_snapshot);
DEFINE_VEC(rec_part_vec, struct rec_part);

// What snapshots list: their parts and survivors, by snapshot. Zeroed is empty and valid.
struct rss_tables {
    struct rec_part_vec parts;         // owned
    struct rec_survivor_vec survivors; // owned
    struct shared_claim_vec claims;    // owned; of a moment until they are settled
};

void rss_tables_release(struct rss_tables *tables);

// Append the tables of another moment, whose snapshots have numbers from `first` on.
enum err rss_tables_append(struct rss_tables *tables, const struct rss_tables *more, uint32_t first)
    MUST_USE;

// Set the bytes and flags of *snapshot, and append its parts and survivors with `index` as their
// `snapshot`. Names go to `strings`.
enum err rss_split(const struct rss_process *what,
                   const struct memory_areas *map,
                   uint32_t index,
                   struct string_table *strings,
                   struct rec_memory_snapshot *snapshot,
                   struct rss_tables *tables) MUST_USE;
