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
// Cost: a read of pagemap for the heap and cut areas, two walks over the live blocks.
// Memory: a bit a page of these areas. At most RSS_SPLIT_PAGES_MAX pages are read; areas beyond
// that are estimated.
// Context: H.
#pragma once

#include "base/err.h"
#include "host/containers/string_table.h"
#include "host/containers/vec.h"
#include "recorder/memory/rss_pieces.h"
#include "recording/format/tables.h"

#define RSS_SPLIT_PAGES_MAX ((size_t)16 << 20) // 64 GiB

DEFINE_VEC(rec_memory_snapshot_vec, struct rec_memory_snapshot);
DEFINE_VEC(rec_part_vec, struct rec_part);

// Set the bytes and flags of *snapshot, and append its parts with `index` as their `snapshot`.
// Names go to `strings`.
enum err rss_split(const struct rss_process *what,
                   const struct memory_areas *map,
                   uint32_t index,
                   struct string_table *strings,
                   struct rec_memory_snapshot *snapshot,
                   struct rec_part_vec *parts) MUST_USE;
