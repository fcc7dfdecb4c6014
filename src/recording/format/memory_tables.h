// SPDX-License-Identifier: MIT
// memory_tables: the tables of a recording (tables.h) on resident memory and on mappings.
//
// Context: H.
#pragma once

#include <stdint.h>

#include "recording/format/rec_string.h"

// One sample of /proc/PID/smaps_rollup and stat of a process.
struct rec_rss_sample {
    uint64_t time_ms;
    uint32_t process;
    uint32_t reserved;
    uint64_t rss_bytes;
    uint64_t anonymous_bytes;
    uint64_t file_bytes;
    uint64_t shmem_bytes;
    uint64_t swap_bytes;
    uint64_t minor_faults;
    uint64_t major_faults;
    uint64_t break_bytes;  // virtual: the brk area, from the first to the last break
    uint64_t data_bytes;   // virtual: private and writable, break_bytes included
    uint64_t mapped_bytes; // virtual: mapped by the program's own calls
    // Bytes of the three kinds that do not count again in a sum of processes, because an earlier
    // process of the same moment has these pages, too. At most the bytes of the kind.
    uint64_t repeated_anonymous_bytes;
    uint64_t repeated_file_bytes;
    uint64_t repeated_shmem_bytes;
    uint64_t doubted_bytes; // of the last two: may count after all, see doubted_pages.h
};

enum rec_mapping_kind {
    REC_MAPPING_ANONYMOUS = 1, // private memory without a file
    REC_MAPPING_FILE = 2,
    REC_MAPPING_SHARED = 3, // shared memory without a name
    REC_MAPPING_BREAK = 4,  // the program moved the break itself
};

// The use of a resident page, from the best known to the least known.
enum rec_part_kind {
    REC_PART_LIVE = 1,     // requested bytes of live heap blocks
    REC_PART_ROUNDING = 2, // unrequested bytes of live heap blocks, and block headers
    REC_PART_KEPT = 3,     // the rest of the allocator's areas: free memory and its own data
    REC_PART_MAPPED = 4,   // anonymous memory mapped by the program itself
    REC_PART_STACK = 5,    // thread stacks
    REC_PART_FILE = 6,     // mapped files, including code
    REC_PART_SHARED = 7,   // shared memory
    REC_PART_OWN = 8,      // cairn's memory in the recorded process
    REC_PART_REST = 9,     // everything else
};
#define REC_PART_KINDS 9

enum rec_memory_snapshot_flags {
    REC_SNAPSHOT_PEAK = 1 << 0,  // at the highest RSS of all processes together
    REC_SNAPSHOT_LAST = 1 << 1,  // the last snapshot
    REC_SNAPSHOT_ASKED = 1 << 2, // requested by a user
    // The resident pages of the heap are estimated, not read, or the heap changed meanwhile.
    REC_SNAPSHOT_ESTIMATED = 1 << 3,
    REC_SNAPSHOT_AT_EXIT = 1 << 4,  // the process was waiting to end
    REC_SNAPSHOT_RELEASED = 1 << 5, // its parts say what a release would return
};

// A snapshot of the whole memory map of one process (/proc/PID/smaps). All snapshots of one moment
// have the same time. The bytes by kind add up to rss_bytes.
struct rec_memory_snapshot {
    uint64_t time_ms;
    uint32_t process;
    uint32_t flags;           // enum rec_memory_snapshot_flags
    uint64_t rss_bytes;       // sum over the map
    uint64_t swap_bytes;      // swapped out, not part of rss_bytes
    uint64_t requested_bytes; // requested bytes of live heap blocks, resident or not
    union {
        struct {
            uint64_t live_bytes;
            uint64_t rounding_bytes;
            uint64_t kept_bytes;
            uint64_t mapped_bytes;
            uint64_t stack_bytes;
            uint64_t file_bytes;
            uint64_t shared_bytes;
            uint64_t own_bytes;
            uint64_t rest_bytes;
        };
        uint64_t bytes[REC_PART_KINDS]; // by enum rec_part_kind, less 1
    };
    // Estimates, 0 if unknown: resident pages of the heap that have no live block, that live blocks
    // fill a quarter of at most, and the bytes of the live blocks on the latter.
    uint64_t empty_page_bytes;
    uint64_t sparse_page_bytes;
    uint64_t sparse_block_bytes;
    // By kind: bytes that do not count again in a sum of processes, because an earlier process of
    // the same moment has these pages, too. At most the bytes of the kind.
    union {
        struct {
            uint64_t repeated_live_bytes;
            uint64_t repeated_rounding_bytes;
            uint64_t repeated_kept_bytes;
            uint64_t repeated_mapped_bytes;
            uint64_t repeated_stack_bytes;
            uint64_t repeated_file_bytes;
            uint64_t repeated_shared_bytes;
            uint64_t repeated_own_bytes;
            uint64_t repeated_rest_bytes;
        };
        uint64_t repeated_bytes[REC_PART_KINDS];
    };
};

// The result of a memory snapshot, grouped by kind, name and stack. Only the snapshots at the peak,
// the last ones and requested ones have parts. Sorted by snapshot.
struct rec_part {
    uint32_t snapshot;
    uint32_t kind;   // enum rec_part_kind
    uint32_t node;   // stack that mapped it, or REC_NONE
    rec_string path; // file path, or the kernel's name; "" if unnamed
    uint32_t areas;  // number of mappings, or of parts of mappings
    uint32_t is_estimate;
    uint64_t virtual_bytes;
    uint64_t rss_bytes;
    uint64_t swap_bytes;
    uint64_t repeated_bytes; // of rss_bytes: as in rec_memory_snapshot
    rec_string allocator;    // of heap: path of the module whose allocator has it; 0: unknown
    uint64_t released_bytes; // of kept memory: what a release of the allocator would return
    uint64_t huge_bytes;     // of rss_bytes, by share: in huge pages
    uint64_t blank_bytes;    // of huge_bytes, an estimate: pages that hold only zeros
};

// The live blocks of one stack that are on sparse pages of the heap, in the snapshots that have
// parts; the largest. Sorted by snapshot.
struct rec_survivor {
    uint32_t snapshot;
    uint32_t node;
    uint64_t blocks;
    uint64_t block_bytes; // requested
    uint64_t held_bytes;  // free bytes of these pages, divided among their blocks
    uint64_t oldest_ms;   // birth of the oldest of them
    uint64_t newest_ms;
};

// The bytes that one stack mapped with its own calls to mmap and similar functions, page by page.
// They are not heap: rows and totals do not count them. Bytes inherited over fork count as mapped
// by the child.
struct rec_mapping {
    uint32_t process;
    uint32_t node;
    uint32_t kind; // enum rec_mapping_kind
    uint32_t reserved;
    uint64_t mappings; // mapping calls
    uint64_t mapped_bytes;
    uint64_t unmapped_bytes; // part of the mapped bytes that was unmapped or mapped over, by any
                             // stack
    uint64_t own_peak_bytes; // highest bytes mapped at one time
};
