// SPDX-License-Identifier: MIT
// release_rules: which memory an allocator cannot return to the kernel because of a live block.
//
//   glibc      |..hBBBBf....|     whole pages behind the head of free memory go back, so a block
//                                 keeps its own head and that of what follows it
//   jemalloc   |rrrBrrrr|rrrr|    slabs of equal regions: the block keeps its slab, which follows
//                                 from its address and its size class
//   tcmalloc   |......|..B...|    the same with spans of 8 KiB and their multiples
//   mimalloc   |...B...       |   64 KiB
//
// The release itself (malloc_trim(0), a purge, ReleaseFreeMemory, mi_collect) returns everything
// else, except for the top of glibc's arenas for threads, which malloc_trim leaves.
// Sources: malloc.c of glibc 2.36 (mtrim, systrim), sc.c of jemalloc 5.3 (slab_size), common.cc of
// gperftools 2.10, segment.c of mimalloc 2.0. Other versions have other classes: what these rules
// say is compared with the real calls in tests/e2e/test_release.py.
// Context: H; pure.
#pragma once

#include <stdint.h>

#include "host/containers/address_range.h"

enum release_rule {
    RELEASE_BY_PAGE, // unknown: a block keeps its own pages
    RELEASE_GLIBC,
    RELEASE_JEMALLOC,
    RELEASE_TCMALLOC,
    RELEASE_MIMALLOC,
};

// Return the rule of the allocator in a module, by the allocator's name ("" if unknown) and the
// module's path.
enum release_rule release_rule_of(const char *allocator, const char *path);

// Return what a live block keeps. It begins at or before the block's page and ends at or behind its
// end.
struct address_range release_span_of(enum release_rule rule, uint64_t address, uint64_t size_bytes);

enum {
    GLIBC_HEAP_BYTES = 64 << 20, // an arena's heap is aligned to this
    GLIBC_HEAD_BYTES = 4096,     // of a heap: its state and first blocks are libc's own
};
