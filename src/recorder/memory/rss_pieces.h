// SPDX-License-Identifier: MIT
// rss_pieces: assigns each part of a memory map to an owner.
//
// The kernel merges neighbours: one area of smaps may hold a mapping of the program, a block of
// malloc and the stack of a thread. So areas are cut where claims begin and end, the most reliable
// claim first:
//
//   cairn's own notes > the program's mappings > stacks of known threads > what an allocator says
//   > the area's shape
//
// The shape of an area is its name, its predecessor, and its start: glibc's areas for threads begin
// at multiples of 64 MiB; the memory after a file's last mapping is its .bss, as far as the file's
// program headers say (memory_areas.h); an area of at most a stack's size behind a guard is a stack
// if a thread's stack pointer is in it. Only shapes identify the mappings that libc makes
// internally.
// Memory with a live block is heap, whatever its shape (rss_split.h).
//
// Heap belongs to the allocator that mapped it: to the module whose code called mmap, if the call
// was seen. libc's own calls are not. So in a process that was recorded from its start, the shapes
// of glibc's areas are libc's, and in a late one what glibc's headers claim. Other memory with live
// blocks is of the only allocator that it can be of; if there are several, that is unknown.
// Context: H. Addresses of the program are only compared.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregate/aggregator.h"
#include "aggregate/books/listed_block.h"
#include "base/err.h"
#include "host/containers/address_range.h"
#include "host/containers/vec.h"
#include "recorder/memory/memory_areas.h"
#include "recorder/processes/hooked_list.h"
#include "recorder/release/release_rules.h"

// What an allocator has in a process that is not recorded from its start, as read from outside.
enum heap_claim_kind {
    HEAP_CLAIM_NONE,
    HEAP_CLAIM_CHUNKS, // blocks and free memory
    HEAP_CLAIM_BLOCKS, // large blocks, all in use
};

struct heap_claim {
    struct address_range range;
    enum heap_claim_kind kind;
};
DEFINE_VEC(heap_claim_vec, struct heap_claim);

// Zeroed is empty and valid.
struct foreign_heap {
    struct heap_claim_vec claims;  // owned; by address
    struct address_range_vec free; // owned; by address: free memory in the claims
    struct u64_vec tops;           // owned; by address: starts of free memory that is not released
    bool is_whole;                 // all free memory is known
    bool is_read;                  // all heaps of that allocator were found
    bool knows_tops;               // `tops` are those of all arenas for threads
};

struct page_wants;

// What is known about a process besides its map; all borrowed. Without read_pages the source is
// read at once.
struct rss_process {
    const struct aggregator *aggregator;
    const struct aggregator_process *process;
    const struct listed_block_vec *listed; // its live blocks
    uint64_t listed_changes;               // live blocks that changed while they were listed
    uint64_t late_bytes;                   // shared_claim.late_bytes
    const struct address_range_vec *own;   // cairn's own memory
    const struct u64_vec *stack_tops;      // ends of known threads' stacks, in order
    const struct u64_vec *stack_pointers;  // of sleeping threads, in order
    const struct foreign_heap *foreign;    // NULL: none
    struct page_source pages;              // read is NULL: none
    bool is_heap_known;                    // all its live blocks are recorded
    rec_string libc;                       // the module of its libc; 0: unknown
    const struct rec_hook_vec *hooks;      // names allocators; NULL: none
    // Read all wanted pages. Return whether events were counted meanwhile.
    bool (*read_pages)(void *context, struct page_wants *wants);
    // Return whether a recorded block has ever begun in a range; also if that is unknown. NULL: it
    // is.
    bool (*had_blocks)(void *context, struct address_range range);
    // Each millisecond of a long map or of many blocks, as listed_walk.pause. NULL: no pauses.
    uint64_t (*pause)(void *context);
    void *context;
};

struct rss_piece {
    uint64_t start;
    uint64_t end;
    uint64_t rss_bytes;
    uint64_t swap_bytes;
    size_t area;      // index in the map
    const char *path; // borrowed from the map
    uint32_t kind;    // enum rec_part_kind; REC_PART_KEPT: of the allocator
    uint32_t node;    // stack that mapped it, or REC_NONE
    enum heap_claim_kind claim;
    rec_string allocator; // of REC_PART_KEPT: the module whose allocator has it; 0: unknown
    bool is_by_blocks;    // only live blocks say that it is heap
    bool is_earlier;      // unnamed memory that the process had when it was attached to
    bool is_asked;        // only what its allocator said makes it heap
    // Set by rss_split, for pieces of the allocator:
    uint64_t live_count;
    uint64_t apart_count;     // of these, blocks that may have a mapping of their own
    uint64_t requested_bytes; // in live blocks
    uint64_t extent_bytes;    // of these blocks with their headers and rounding
    uint64_t live_bytes;      // resident part of the live blocks
    uint64_t occupied_bytes;  // resident part of their extents
    uint64_t free_bytes;      // resident part of what its allocator says is free
    uint64_t released_bytes;  // what a release of free memory would return
    enum release_rule rule;
};

DEFINE_VEC(rss_piece_vec, struct rss_piece);

void foreign_heap_release(struct foreign_heap *heap);

// Return where the top of an arena for threads begins in a heap of it, which malloc_trim does not
// release: at the end if there is none, at the start if the heap has one and glibc did not say
// where.
uint64_t rss_piece_top(const struct rss_process *what, const struct rss_piece *piece);

// Divide what allocators said at the attach among the memory that they may have: its free_bytes and
// released_bytes. Return whether one said something that still holds: neither RSS nor the heap has
// changed much since.
bool rss_pieces_share_answers(const struct rss_process *what, struct rss_piece_vec *pieces);

// Whether free memory is the top of an arena for threads, which malloc_trim does not release.
bool foreign_heap_is_top(const struct foreign_heap *heap, struct address_range range);

// Return the whole pages of free memory that a release can return; empty if there are none.
struct address_range foreign_heap_whole_pages(struct address_range range);

// Return the allocator of memory with live blocks that no call and no claim says anything of.
// `node` is the stack that mapped it, or REC_NONE. 0: unknown.
rec_string
rss_pieces_allocator(const struct rss_process *what, const struct rss_piece *piece, uint32_t node);

// Append the pieces of all areas, by address, without their resident sizes.
enum err rss_pieces_cut(const struct rss_process *what,
                        const struct memory_areas *map,
                        struct rss_piece_vec *out) MUST_USE;
