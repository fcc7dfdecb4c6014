// SPDX-License-Identifier: MIT
// process_words: where the block words of this process are (session/books/block_words.h).
//
//   process_words (a page that the kernel wipes in a forked child)
//     -> directory, by address -> a region, which is mapped at its first block
//
// A region is 82 MiB of address space for 64 MiB of the program's. It takes memory only where it is
// touched.
//
// Blocks without a region have entries (block_entries.h), whose chunks are mapped as they are
// needed, in room that is reserved from the beginning. Once a region could not be mapped, none is
// any more: behind a seccomp filter, or a limit of the address space. A process that began behind
// such a limit has no directory and no regions, so all its blocks have entries.
//
// A forked child finds its page empty: to it no word is there, its parent's are out of reach, and
// the next event that finds `directory` NULL opens words of its own. A put or take that a handler
// interrupts to fork ends in the child, too, with the parent's word; the hook of fork has to
// replace the regions in such a child.
//
// Owns: the directory and the regions, as long as the process lives. Context: T, any thread;
// async-signal-safe, no lock: two threads that need the same region both map it, and one gives
// its own up.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/err.h"
#include "session/books/block_entries.h"
#include "session/books/free_rows.h"
#include "session/books/sampling_level.h"
#include "target/producer/words/words_source.h"

#define WORDS_LEAN_BELOW ((uint64_t)10 << 30) // a limit of addresses; a room takes 2.6 GiB of them

// Room for a group of regions, mapped at once and without access: the file need not be opened again
// for each, and mlockall(MCL_FUTURE) populates none.
// An address, which has low bits to spare, and the number of the group; 0: not mapped (yet).
#define WORDS_WINDOWS_MAX 64u                 // 128 GiB of the program's addresses
#define WORDS_TAKEN_ALL   ((uint32_t)1 << 30) // to process_words.taken: no region is left

struct process_words {
    _Atomic(struct words_region *) *directory; // NULL: no regions; not open, or wiped by a fork
    // Of cairn.h's blocks; NULL: there were none.
    _Atomic(_Atomic(struct words_region *) *) custom_directory;
    struct words_file *file; // NULL: not open, or wiped by a fork
    struct words_source source;
    uint32_t process;                               // names the process in the file
    _Atomic uint32_t range_count;                   // ranges of rows that were taken
    _Atomic uint32_t next_rows[LANE_LEVEL_MAX + 1]; // by level; of a multiple of a range: none
    _Atomic uint8_t range_levels[WORD_RANGES];
    const _Atomic uint32_t *tiny_below; // borrowed; enum words_tiny_below; NULL: wiped by a fork
    _Atomic uint32_t taken;             // regions that were taken
    _Atomic bool has_refused;           // a region could not be mapped
    uint32_t entries_number;            // of the region of entries
    char *entries_room;                 // its room; NULL: each chunk is mapped alone
    _Atomic(struct entry_bucket *) chunks[ENTRY_CHUNKS];
    _Atomic(struct free_rows *) free_rows; // NULL: not mapped (yet); WORDS_NO_FREE_ROWS
    _Atomic uint64_t windows[WORDS_WINDOWS_MAX];
};

ALWAYS_INLINE bool process_words_are_open(const struct process_words *words)
{
    return words->file != NULL;
}

// Allocate the page of this process, which all its children keep. NULL: no memory, or a kernel that
// cannot wipe it.
struct process_words *process_words_new(void);

// Open the file of words for this process. The page may be a new one, or one that a fork has wiped.
// `tiny_below` stays as long as the process lives, and may rise before an allocator is used that
// needs it. NULL: WORDS_TINY_NEVER.
MUST_USE enum err process_words_open(struct process_words *words,
                                     const struct words_source *source,
                                     uint32_t process,
                                     const _Atomic uint32_t *tiny_below);

// Return the region of an address that has a place, and map it first if necessary. NULL: it cannot
// be mapped.
struct words_region *process_words_map(struct process_words *words, uint64_t address);

// A chunk that is not mapped, and has no room of its own any more.
#define WORDS_CHUNK_ALONE ((struct entry_bucket *)1)

// A list of free numbers that cannot be mapped.
#define WORDS_NO_FREE_ROWS ((struct free_rows *)1)

// Return a chunk of entries, and map it first if necessary. NULL: it cannot be mapped.
struct entry_bucket *process_words_chunk(struct process_words *words, uint32_t chunk);

// Map all chunks and the list of free numbers, because the program is about to forbid system calls,
// and give back the room of regions, which cannot be used any more.
void process_words_foresee(struct process_words *words);

// Give back the room that no block uses (region_cut.h), because the program limits its address
// space. From then on no region is mapped, and a chunk is mapped alone. The ancestors' room goes,
// too, unless the caller has interrupted a hook (`is_nested`): the parent may have been in it.
void process_words_map_leanly(struct process_words *words, bool is_nested);

// Map the list of numbers of rows that were given back. NULL: it cannot be mapped.
struct free_rows *process_words_open_free_rows(struct process_words *words);

// Return that list. NULL: there is none (yet).
ALWAYS_INLINE struct free_rows *process_words_free_rows(struct process_words *words)
{
    const _Atomic uint8_t *gives = words->file->gives_rows + words->entries_number / WORDS_GROUP;
    // Relaxed: it guards nothing.
    return atomic_load_explicit(gives, memory_order_relaxed) != 0
               ? process_words_open_free_rows(words)
               : NULL;
}

ALWAYS_INLINE uint32_t process_words_row_level(const struct process_words *words, uint32_t row)
{
    // Relaxed: the level was stored before the row's first word.
    return atomic_load_explicit(words->range_levels + row / WORD_RANGE_ROWS, memory_order_relaxed);
}

// Return a chunk of entries, NULL if it is not mapped.
ALWAYS_INLINE struct entry_bucket *process_words_chunk_find(const struct process_words *words,
                                                            uint32_t chunk)
{
    // Relaxed: the chunk was mapped before its address was stored, and stays.
    struct entry_bucket *found = atomic_load_explicit(words->chunks + chunk, memory_order_relaxed);
    return found != WORDS_CHUNK_ALONE ? found : NULL;
}

// Return the region of an address, NULL if it is not mapped.
ALWAYS_INLINE struct words_region *process_words_find(const struct process_words *words,
                                                      uint64_t address)
{
    // Relaxed: a directory and a region are mapped before their address is stored, and stay.
    _Atomic(struct words_region *) *directory =
        UNLIKELY((address & WIRE_CUSTOM_BLOCK) != 0)
            ? atomic_load_explicit(&words->custom_directory, memory_order_relaxed)
            : words->directory;
    if (UNLIKELY(directory == NULL || !words_have_place(address))) {
        return NULL;
    }
    return atomic_load_explicit(directory + words_place(address) % WORDS_CUSTOM_REGIONS,
                                memory_order_relaxed);
}
