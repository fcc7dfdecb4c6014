// SPDX-License-Identifier: MIT
// aggregator_process: one image of one recorded process, from its join to its end.
//
// It has its own stack names and mappings, because addresses have a meaning in one process only,
// and its own numbers of rows (aggregator_book.h). The end of the process releases them; its record
// stays for the recording.
// Context: H, one thread; owned by the aggregator.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "aggregate/tables/mapping_map.h"
#include "base/bytes.h"
#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/vec.h"
#include "host/text/strbuf.h"
#include "recording/format/tables.h"
#include "session/books/book_layout.h"

struct aggregator;
struct string_table;

// An allocator whose functions are hooked in a process.
struct process_allocator {
    rec_string module; // path
    rec_string name;   // in lower case; 0: unknown, or the module has several
    // What it said when it was asked, at the attach; 0: it was not, or keeps nothing.
    uint64_t kept_bytes;     // resident, and not in blocks in use
    uint64_t released_bytes; // of these: what it gives back when it is told to
    uint64_t rss_bytes;      // of the process, then
};
DEFINE_VEC(process_allocator_vec, struct process_allocator);
DEFINE_VEC(book_entry_vec, struct book_entry);

// As a peak_share (session/books/peak_share.h).
struct variance_share {
    double before;
    double since;
    uint32_t number; // of the peak
};

struct aggregator_process {
    struct rec_process record; // as the recording will hold it
    uint64_t join_number;      // of the session: orders the images that have joined
    uint32_t index;            // in the recording
    bool is_ended;
    bool is_unread;           // it did not let its memory map be read in time
    bool tells_settings;      // `settings` is known
    uint32_t settings;        // enum runtime_setting (session/runtime_settings.h)
    uint64_t end_peak_number; // number of the global peak when it ended
    uint64_t live_bytes;
    // Of the books of its threads (aggregator_book.h):
    struct u32_vec book_nodes;      // by number of the row; REC_NONE: no slot has it
    struct u32_vec book_rows;       // likewise; REC_NONE: no allocation yet
    struct u32_vec book_live;       // likewise: blocks allocated less freed, modulo 2^32
    struct u32_vec book_unused;     // numbers to be given back
    bool book_has_gaps;             // entries are lost, so no number is given back
    struct u32_vec book_levels;     // by range of numbers: of sampling; REC_NONE: none has a row
    struct variance_share variance; // of the estimate of its live bytes
    struct book_entry_vec debts;    // entries that wait
    uint64_t book_ms;               // when an entry was counted last
    uint64_t live_blocks;
    uint32_t thread_count;        // all threads so far
    struct map_u64 nodes_by_name; // stack names of this address space -> nodes
    struct mapping_map mapped;    // its own mappings
    struct map_u64 mapping_rows;  // node and kind -> row of aggregator.mappings
    uint64_t mapped_bytes;        // sum over `mapped`
    struct map_u64 adhoc_rows;    // node -> row of aggregator.adhoc
    // Of a process that was attached to: memory without a name that it had by then, starts and ends
    // by address, and what to call it.
    struct u64_vec earlier_ranges;
    rec_string earlier_name;
    // Of a process with the agent, inherited over fork: the module of libc, and the allocators
    // besides libc's. Whether it was attached to: then it has memory that no hook has seen.
    rec_string libc;
    struct process_allocator_vec allocators;
    bool has_agent;
    bool is_late;
    struct map_u64 expected_threads;     // thread id -> entry, of threads without an event
    struct rec_rss_sample latest_sample; // from proc_sampler
    uint64_t glanced_shared_bytes;       // files and shared memory, at its latest glance
    uint64_t snapshot_live_bytes;        // live_bytes at its latest memory snapshot's map
    uint64_t snapshot_mapped_bytes;      // mapped_bytes then
    uint32_t jit_module;                 // of its code that belongs to no file; 0: none yet
    uint32_t unnamed_module; // 1 + that of the program, used before its path was known; 0: none
};
_Static_assert(sizeof(struct aggregator_process) <= 1088,
               "one for each process that there ever was");

// Append `arguments`, each ended by a zero byte, as one line that a shell parses back unchanged.
void command_line_quote(struct strbuf *line, struct bytes arguments);

// Intern that line.
enum err command_line_intern(struct string_table *strings, struct bytes arguments, rec_string *out)
    MUST_USE;

// Return the latest image of a process id, or NULL.
struct aggregator_process *aggregator_process_latest(struct aggregator *aggregator, uint32_t pid);
