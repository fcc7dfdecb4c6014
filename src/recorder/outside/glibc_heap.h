// SPDX-License-Identifier: MIT
// glibc_heap: what glibc's malloc has of a process that cairn has not recorded from its start.
//
//   [heap]             of the main arena, whose state is in the data of libc
//   n * 64 MiB  +----+-------+------------------ - - -+
//               |info| state | chunks ...       | top |   a heap of another arena; `info` names its
//               +----+-------+------------------ - - -+   arena, the state links the next arena
//   +----+------- - - -+
//   |size| block       |   a block with a mapping of its own, several in a row
//   +----+------- - - -+
//
// The state of an arena lists its free chunks in bins. No lock is taken: the program may change all
// that meanwhile. So each chunk is checked: it is within a heap, and the next one of its list names
// it. A list that fails ends, and is_whole is false. Blocks in the caches of threads count as in
// use.
// Context: H, any thread. The program can write anything there: each step is bounded, and what is
// found is only compared with the map. A page may not answer, so it is read aside (aside/aside.h).
// Cost: a small read for each free chunk, at most CHUNKS_MAX.
#pragma once

#include "base/err.h"
#include "recorder/memory/memory_areas.h"
#include "recorder/memory/rss_pieces.h"

// Find the heaps and large blocks, and the free parts of the former. `stack_tops`, by address,
// may be in the same areas. ERR_NO_MEMORY; without a glibc *out is empty.
enum err glibc_heap_read(const struct memory_areas *map,
                         const struct memory_source *memory,
                         const struct u64_vec *stack_tops,
                         struct foreign_heap *out) MUST_USE;

// Find only the tops of the arenas for threads. A few small reads for each. out->knows_tops says
// whether all could be read.
enum err glibc_heap_read_tops(const struct memory_areas *map,
                              const struct memory_source *memory,
                              struct foreign_heap *out) MUST_USE;
