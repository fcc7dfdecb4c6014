// SPDX-License-Identifier: MIT
// rss_pieces: whose each part of a memory map is.
//
// The kernel merges neighbours: one area of smaps may hold a mapping of the program's, a block of
// malloc's and the stack of a thread. So areas are cut where claims begin and end, best known
// first:
//
//   cairn's own notes > what the program mapped itself > stacks of known threads > the area's shape
//
// An area's shape is its name, what lies before it, and where it begins: glibc's areas for threads
// begin at multiples of 64 MiB; the memory behind a file's last mapping is its .bss; what lies
// behind an inaccessible mapping is a stack with its guard. Shapes are what is left to go by for
// mappings that libc makes inside itself. Whatever holds a live block is heap, shape or not
// (rss_split.h). Context: H. Addresses of the program are only compared.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregate/aggregator.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "recorder/memory/memory_areas.h"

struct address_range {
    uint64_t start;
    uint64_t end;
};

DEFINE_VEC(address_range_vec, struct address_range);

// What is known of a process beside its map; all borrowed.
struct rss_process {
    const struct aggregator *aggregator;
    const struct aggregator_process *process;
    const struct address_range_vec *own; // memory of cairn's
    const struct u64_vec *stack_tops;    // behind the highest page of known threads' stacks
    struct page_source pages;            // read is NULL: there is none
    bool is_heap_known;                  // all of its live blocks are in the aggregator
};

struct rss_piece {
    uint64_t start;
    uint64_t end;
    uint64_t rss_bytes;
    uint64_t swap_bytes;
    size_t area;      // index in the map
    const char *path; // borrowed from the map
    uint32_t kind;    // enum rec_part_kind; REC_PART_KEPT: the allocator's
    uint32_t node;    // who mapped it, or REC_NONE
    // Filled in by rss_split, of the allocator's:
    uint64_t live_count;
    uint64_t requested_bytes; // in live blocks
    uint64_t extent_bytes;    // those blocks with their heads and rounding
    uint64_t live_bytes;      // the resident part of them
    uint64_t occupied_bytes;  // and of their extents
};

DEFINE_VEC(rss_piece_vec, struct rss_piece);

// Appends the pieces of all areas, in order of their addresses, without their sizes in memory.
enum err rss_pieces_cut(const struct rss_process *what,
                        const struct memory_areas *map,
                        struct rss_piece_vec *out) MUST_USE;
