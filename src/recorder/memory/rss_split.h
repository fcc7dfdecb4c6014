// SPDX-License-Identifier: MIT
// rss_split: what the resident memory of a process consists of: the parts of one look.
//
// The pieces of the map (rss_pieces) get their share of what smaps says of their area; where an
// area has several, pagemap says which pages of each are there. In the allocator's pieces the live
// blocks are walked: what of them lies on resident pages is live; what of their extents, which is
// what glibc's malloc takes for a request of that size, is rounding; the rest is what the allocator
// keeps.
//
//   resident pages of the heap   |##########|....|####......|##|..........|
//                                 live       rounding        live  kept
//
// Sums are exact by construction: shares never exceed their area, and what is left over goes to
// "kept". Estimates are marked: the border between rounding and kept always (other allocators round
// otherwise), and all three if the pages could not be read.
//
// Cost: a read of pagemap for the heap and cut areas, two walks over the live blocks. Memory: a bit
// a page of these areas. At most RSS_SPLIT_PAGES_MAX pages are read; areas beyond that are
// estimated. Context: H.
#pragma once

#include "base/err.h"
#include "host/containers/string_table.h"
#include "host/containers/vec.h"
#include "recorder/memory/rss_pieces.h"
#include "recording/format/tables.h"

#define RSS_SPLIT_PAGES_MAX ((size_t)16 << 20) // 64 GiB

DEFINE_VEC(rec_memory_snapshot_vec, struct rec_memory_snapshot);
DEFINE_VEC(rec_part_vec, struct rec_part);

// Sets the bytes and flags of *look, and appends its parts, whose `look` is `index`. Names go to
// `strings`.
enum err rss_split(const struct rss_process *what,
                   const struct memory_areas *map,
                   uint32_t index,
                   struct string_table *strings,
                   struct rec_memory_snapshot *look,
                   struct rec_part_vec *parts) MUST_USE;
