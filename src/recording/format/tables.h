// SPDX-License-Identifier: MIT
// tables: a recording in memory, as columns of plain structs.
//
// The recorder hands a struct recording to the writer, the reader hands one to the profile, and an
// importer of a foreign format fills one in. docs/format/recording.md describes the file.
//
//   processes 1--n threads 1--n rows n--1 nodes n--1 frames n--1 modules
//                                |                     |
//                          cells, size and         symbols (function, file, line; innermost first)
//                          lifetime buckets
//
// Invariants (test_support/recording_check.h checks them):
//   every index is below the count of the table it points to, or is REC_NONE where that is allowed;
//   node 0 is the root, its parent is REC_NONE, and every other node's parent is below itself;
//   rows are unique by (thread, node); sum over rows = totals for each additive cost;
//   frees <= allocations and freed_bytes <= allocated_bytes in every row;
//   sum of a row's cells = the row; sum of its size buckets = its allocations.
// Derived, never stored: live at the end ("leaked") = allocated - freed.
// Ownership: a struct recording from the reader or from a recording_builder owns its arrays
// (recording_release). One that the recorder builds for the writer borrows them. Context: H.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bucket.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "recording/format/memory_tables.h"
#include "recording/format/rec_string.h"

enum rec_state {
    REC_STATE_RUNNING = 0,  // a checkpoint: the run continued after it
    REC_STATE_FINISHED = 1, // every recorded process ended, and the recording is complete
    REC_STATE_STOPPED = 2,  // recording was stopped while the program continued
};

// What the source format does not contain. The figures concerned are 0, or follow from known ones,
// and must not be shown as measured. A recording by cairn itself sets none of these flags.
enum rec_unknown {
    REC_UNKNOWN_ALLOCATIONS = 1 << 0, // counts and bytes over time, and what was freed
    REC_UNKNOWN_TEMPORARY = 1 << 1,
    REC_UNKNOWN_PEAK = 1 << 2,
    REC_UNKNOWN_LEAKED = 1 << 3, // what was live at the end
    REC_UNKNOWN_BLOCKS = 1 << 4, // the number of blocks that the bytes belong to
    REC_UNKNOWN_OWN_PEAK = 1 << 5,
    REC_UNKNOWN_TIME = 1 << 6, // times, and the duration of the run
    REC_UNKNOWN_LIFETIMES = 1 << 7,
    REC_UNKNOWN_THREADS = 1 << 8, // one entry stands for all
    REC_UNKNOWN_NAMES = 1 << 9,   // of frames without one: no symbolization was tried
};

struct rec_meta {
    uint32_t state;      // enum rec_state
    uint32_t page_bytes; // page size of the recorded machine
    uint32_t cpu_count;
    uint32_t pid;        // the started program, 0 if unknown
    int32_t exit_status; // wait status of the started program as waitpid gives it, -1 while it runs
    uint32_t max_frames;
    uint64_t start_unix_ns;    // CLOCK_REALTIME at time 0
    uint64_t runtime_ms;       // from the start to the last event or the end of the last process
    uint64_t memory_bytes;     // memory size of the recorded machine
    uint64_t checkpoint_count; // checkpoints written before this state of the file
    uint64_t checkpoint_interval_ms; // time from this checkpoint to the start of the next; 0: none
                                     // follows
    rec_string tool_version;
    rec_string host;
    rec_string kernel; // uname: sysname release machine
    rec_string libc;
    rec_string program;       // path of the executable
    rec_string command_line;  // of the program; arguments quoted as for a shell
    rec_string source_format; // "cairn", or the foreign format that was imported
    rec_string suppressions;  // LSan rules of the program that an imported file has, one a line
    uint32_t unknown;         // enum rec_unknown
    uint64_t oom_limit_bytes; // at which the kernel killed a process of the run for lack of memory;
                              // 0: it did not
};

// Exact unless peak_error_bytes, unsampled_allocations or interval_bytes is set. See
// docs/accuracy.md.
struct rec_totals {
    uint64_t allocations;     // successful allocation calls; a realloc counts as one
    uint64_t allocated_bytes; // sum of the requested sizes
    uint64_t frees;           // of recorded blocks; a realloc counts as one
    uint64_t freed_bytes;
    uint64_t temporary; // allocations that their thread's next event freed
    uint64_t temporary_bytes;
    uint64_t peak_bytes;       // highest sum of live bytes of all processes
    uint64_t peak_error_bytes; // the true peak lies within peak_bytes +- this, and is at least
                               // peak_at_least_bytes; 0 with one thread; holds for 95 of 100
                               // recordings if allocations were not recorded
    uint64_t peak_time_ms;
    uint64_t peak_blocks;   // live blocks at the peak
    uint64_t unknown_frees; // frees of blocks that were not recorded (inherited over fork, foreign)
    uint64_t events;        // counted allocations and frees; a realloc is both
    // --sample, --overflow=sample: 0 if every event was recorded. If this or interval_bytes is not
    // 0, all figures above and in rows are estimates. Exact: allocations -
    // represented_allocations + unsampled_allocations; likewise for bytes.
    uint64_t unsampled_allocations; // exact; represented by others
    uint64_t unsampled_bytes;
    uint64_t unsampled_frees;         // frees of unsampled blocks
    uint64_t sampled_allocations;     // recorded allocations with a weight above 1
    uint64_t represented_allocations; // further allocations that they represent
    uint64_t represented_bytes;
    uint64_t max_weight;                // highest sampling weight; 0 or 1: none above 1
    uint64_t peak_standard_error_bytes; // standard error of the live bytes at the peak
    uint64_t peak_at_least_bytes;       // 0: unknown, then peak_bytes - peak_error_bytes
    uint64_t sample_bytes;              // --sample: one block in so many allocated bytes; 0: none
    uint64_t interval_bytes;            // at least one block in so many bytes was recorded at any
                                        // time; 0: unknown
    uint64_t peak_flight_bytes;         // the part of peak_error_bytes that is only blocks between
                                        // the program and the allocator; of older recordings
};

enum rec_process_flags {
    REC_PROCESS_FORKED = 1 << 0,        // began as a copy of its parent
    REC_PROCESS_OWN_ALLOCATOR = 1 << 1, // its malloc was not recorded, see the report's health
    REC_PROCESS_EXECED = 1 << 2,        // replaced by exec; a later entry continues it if the new
                                        // program is recorded
    REC_PROCESS_MAIN = 1 << 3,          // the started program
    REC_PROCESS_GO = 1 << 4,            // a Go program that uses C: only C's heap is recorded
    REC_PROCESS_ATTACHED = 1 << 5,      // ran before: its earlier blocks are not recorded
    REC_PROCESS_KILLED = 1 << 6,        // ended without exit or _exit: by a signal or itself
    REC_PROCESS_OBJECTS = 1 << 7,       // a variable makes its runtime call malloc for each object
    REC_PROCESS_RUNNING = 1 << 8,       // ran on when the recording ended: it may still free blocks
};

// One image of one process. An exec makes a new entry with the same pid and the next epoch.
struct rec_process {
    uint32_t pid;
    uint32_t parent_pid;
    uint32_t parent;     // index, or REC_NONE if the parent was not recorded
    uint32_t epoch;      // earlier recorded execs of the same process
    uint32_t flags;      // enum rec_process_flags
    int32_t exit_status; // wait status if known, else -1
    uint64_t start_ms;
    uint64_t end_ms;         // it may be as much later as end_error_ms says
    uint64_t peak_bytes;     // of this process alone
    uint64_t peak_rss_bytes; // highest sample, 0 if never sampled
    rec_string executable;
    rec_string command_line;
    rec_string allocator;    // path of the object that served malloc
    rec_string runtime;      // key of symbols/runtimes/runtime_table.h; 0: none is known
    uint64_t left_ms;        // 1 + the time when its blocks left the heap, because it ended or
                             // executed another program; 0: they stay to the end of the recording
    uint64_t killed_threads; // REC_PROCESS_KILLED: threads that had not ended by then
    uint64_t end_error_ms; // 1 + how much later it ended at most; 0: unknown, and end_ms may be the
                           // time of its last event
};

enum rec_thread_flags {
    REC_THREAD_MERGED = 1 << 0, // one entry for several threads of one name, beyond the cap
};

struct rec_thread {
    uint32_t process;
    uint32_t thread_id;
    uint32_t flags;        // enum rec_thread_flags
    uint32_t merged_count; // number of threads in this entry, 1 without merging
    uint64_t start_ms;
    uint64_t end_ms;
    rec_string name;
};

struct rec_module {
    rec_string path;          // path from the dynamic linker; "" for code without a file
    rec_string build_id;      // lower-case hexadecimal, "" if it has none
    rec_string symbol_source; // file with the names, "" if none
    rec_string symbol_advice; // how to get better names, "" if they are good
    uint32_t is_executable;   // 1 for a main program
    uint32_t frames;          // number of distinct frames in the module
    uint32_t frames_with_function;
    uint32_t frames_with_line;
};

enum rec_frame_flags {
    REC_FRAME_CUT = 1 << 0,      // pseudo frame: the middle of a deep stack was omitted here
    REC_FRAME_EXACT_PC = 1 << 1, // offset is the address of the instruction, not a return address
    REC_FRAME_LOADED = 1 << 2,   // offset is the pc, because the load bias of the module is unknown
};

// The offset of a REC_FRAME_CUT frame where stacks were merged: below it are the stacks with the
// same outer frames and without an entry of their own (--max-memory). Else the offset is 0.
#define REC_CUT_MERGED 1u

// How the path of a module begins that stands for a function of Python.
#define REC_PYTHON_MODULE "[python] "

// A distinct code location. Its symbols are symbols[symbol_first .. + symbol_count): the chain of
// inlined functions, innermost first; the last one is the real function. The chain is empty if the
// frame is not symbolized.
struct rec_frame {
    uint32_t module; // REC_NONE: code without a file, offset is the pc
    uint32_t flags;  // enum rec_frame_flags
    uint64_t offset; // pc - load bias: an address as in the ELF file
    uint32_t symbol_first;
    uint32_t symbol_count;
    uint64_t function_start; // start of a function without a name, in the terms of offset; 0:
                             // unknown, or the function has a name
};

struct rec_symbol {
    rec_string function; // demangled, "" if unknown
    rec_string file;     // "" if unknown
    uint32_t line;       // 0 if unknown
};

// The leaf node of a stack identifies the stack. The root has no frame; its children are thread
// entries.
struct rec_node {
    uint32_t parent;
    uint32_t frame;
};

// The costs of one stack on one thread.
struct rec_row {
    uint32_t thread;
    uint32_t node;
    uint64_t allocations;
    uint64_t allocated_bytes;
    uint64_t frees; // of blocks that this row allocated, by any thread
    uint64_t freed_bytes;
    uint64_t temporary;
    uint64_t temporary_bytes;
    uint64_t peak_bytes; // live at the global peak
    uint64_t peak_blocks;
    uint64_t own_peak_bytes; // highest live bytes of this row, to the millisecond
};

// The costs of a row in one time slice. Sorted by row, then slice. A slice lasts slice_ms.
struct rec_cell {
    uint32_t row;
    uint32_t slice;
    uint64_t allocations;
    uint64_t allocated_bytes;
    uint64_t frees; // in this slice, of blocks that this row allocated in any slice
    uint64_t freed_bytes;
    uint64_t temporary;
};

// One bucket of a row's histogram. Sorted by row, then bucket. Buckets are logarithmic, four to an
// octave. Only rec_bucket_of() and rec_bucket_low() define them.
struct rec_bucket {
    uint32_t row;
    uint32_t bucket;
    uint64_t count;
    uint64_t bytes;
};

// Blocks of a row that outlived their time slice, by the slices of their birth and death.
struct rec_cohort {
    uint32_t row;
    uint32_t born_slice;
    uint32_t freed_slice; // REC_NONE: live at the end
    uint32_t blocks;
    uint64_t bytes;
};

// The whole recording in one time slice.
struct rec_slice {
    uint64_t allocations;
    uint64_t allocated_bytes;
    uint64_t frees;
    uint64_t freed_bytes;
    uint64_t temporary;
    uint64_t live_bytes;     // at the slice's end, of the processes running then; if none runs any
                             // more, the live bytes of the last one when it ended
    uint64_t live_max_bytes; // highest within the slice, to the millisecond
};

enum rec_counter_kind {
    REC_COUNTER_LOSS = 0, // events missing from the profile; zero in a healthy run
    REC_COUNTER_NOTE = 1, // a weakness of the recording; no events are missing
};

// The events that one stack reported with cairn_event. The function of the leaf is the event's
// name. They are not heap: rows and totals do not count them.
struct rec_adhoc {
    uint32_t process;
    uint32_t node;
    uint64_t events;
    uint64_t weight; // sum of the weights, in the program's own unit
};

// The reallocs of a row that grew a block to a page of 4 KiB or more. Sorted by row, without rows
// that have none. Foreign formats have none.
struct rec_realloc {
    uint32_t row;
    uint32_t reserved;
    uint64_t reallocs;
    uint64_t moved_bytes;   // sum of the old sizes: realloc copies them unless it finds room behind
    uint64_t grown_bytes;   // sum of the new sizes, less the old ones
    uint64_t largest_bytes; // largest new size
};

struct rec_counter {
    rec_string name; // as in JSON: snake_case
    rec_string text; // one phrase for readers
    uint32_t kind;   // enum rec_counter_kind
    uint32_t reserved;
    uint64_t value;
};

enum rec_block_flags {
    REC_BLOCK_END = 1 << 0,  // live at the end of its process, or of the recording
    REC_BLOCK_PEAK = 1 << 1, // live at the global peak
};

// One block, if blocks were requested (--blocks). Sorted by row, address, born_ms.
struct rec_block {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t born_ms;
    uint64_t freed_ms; // 0 if it is REC_BLOCK_END
    uint32_t row;
    uint32_t flags; // enum rec_block_flags; at least one is set
};

enum rec_mark_kind {
    REC_MARK_USER = 0,  // set by a user with `cairn ctl FILE mark TEXT`, or by the program with
                        // cairn.h
    REC_MARK_START = 1, // recording began or continued
    REC_MARK_STOP = 2,  // recording stopped: allocations up to the next start are missing
    REC_MARK_PHASE = 3, // the program begins another phase
};

// A moment to mark on the time line. Sorted by time.
struct rec_mark {
    uint64_t time_ms;
    uint32_t kind;   // enum rec_mark_kind
    rec_string text; // "" unless a user gave one
};

// Programs that a recorded process executed and that the recording lacks, by program and reason.
// Not sorted. Bounded: beyond the first few hundred entries, one entry without a program for each
// reason counts the rest.
struct rec_unrecorded {
    rec_string program;   // path, or its end; "" for unnamed programs
    rec_string reason;    // as in JSON: snake_case
    rec_string text;      // one phrase for readers
    uint32_t pid;         // pid of the first one, 0 if unknown
    uint64_t execs;       // number of execs
    uint64_t descendants; // processes started by these, as far as seen: a lower bound
};

// A function that cairn's agent hooked in processes, or could not hook. Not sorted. Processes with
// the preloaded library have none. Bounded: beyond the first thousand entries, one without a
// function counts the rest.
struct rec_hook {
    rec_string module;    // path, as the process names it
    rec_string function;  // without version; "" for the rest
    rec_string allocator; // whose function it is, in lower case; "" if unknown, or of no allocator
    rec_string reason;    // why it is not hooked, the end of a sentence; "" if it is
    uint32_t processes;   // number of program images
};

#define REC_TABLES(X)                                               \
    X(rec_process, processes, process_count)                        \
    X(rec_thread, threads, thread_count)                            \
    X(rec_module, modules, module_count)                            \
    X(rec_frame, frames, frame_count)                               \
    X(rec_symbol, symbols, symbol_count)                            \
    X(rec_node, nodes, node_count)                                  \
    X(rec_row, rows, row_count)                                     \
    X(rec_cell, cells, cell_count)                                  \
    X(rec_bucket, size_buckets, size_bucket_count)                  \
    X(rec_bucket, lifetime_buckets, lifetime_bucket_count)          \
    X(rec_cohort, cohorts, cohort_count)                            \
    X(rec_slice, slices, slice_count)                               \
    X(rec_rss_sample, rss_samples, rss_sample_count)                \
    X(rec_mapping, mappings, mapping_count)                         \
    X(rec_adhoc, adhoc, adhoc_count)                                \
    X(rec_realloc, reallocs, realloc_count)                         \
    X(rec_memory_snapshot, memory_snapshots, memory_snapshot_count) \
    X(rec_part, parts, part_count)                                  \
    X(rec_survivor, survivors, survivor_count)                      \
    X(rec_counter, counters, counter_count)                         \
    X(rec_mark, marks, mark_count)                                  \
    X(rec_unrecorded, unrecorded, unrecorded_count)                 \
    X(rec_hook, hooks, hook_count)                                  \
    X(rec_block, blocks, block_count)

struct recording {
    struct rec_meta meta;
    struct rec_totals totals;
    struct rec_strings strings;
    uint64_t slice_ms; // width of a time slice, 0 if there are none
#define X(type, name, count) \
    struct type *name;       \
    size_t count;
    REC_TABLES(X)
#undef X
    bool has_merged_threads; // not in the file: a reader added up the rows of threads of a process;
                             // each has the first thread of its process
    struct recording_owner *owner; // owner of the arrays; NULL if they are borrowed
};

// Histogram buckets (base/bucket.h): bucket b >= 1 holds rec_bucket_low(b) <= v <
// rec_bucket_low(b+1). rec_bucket_low() is UINT64_MAX beyond the last bucket.
#define REC_BUCKET_COUNT   BUCKET_COUNT
#define REC_BUCKET_SINGLES BUCKET_SINGLES
#define REC_BUCKET_OCTAVE  BUCKET_OCTAVE

static inline uint32_t rec_bucket_of(uint64_t value)
{
    return bucket_of(value);
}

uint64_t rec_bucket_low(uint32_t bucket);

// Return the bytes of a string, zero-terminated, borrowed from the recording; "" for an id out of
// range.
const char *rec_string_get(const struct recording *recording, rec_string id);

// Return the counter of this name, NULL if there is none; and its value, 0 if there is none.
const struct rec_counter *rec_counter_find(const struct recording *recording, const char *name);
uint64_t rec_counter_value(const struct recording *recording, const char *name);

// Return the bytes of a memory snapshot that count in a sum of processes: of one kind, or of all.
uint64_t rec_snapshot_counted(const struct rec_memory_snapshot *snapshot, uint32_t kind);
uint64_t rec_snapshot_counted_rss(const struct rec_memory_snapshot *snapshot);

// Return the resident bytes of a sample that count in a sum of processes.
uint64_t rec_rss_sample_counted(const struct rec_rss_sample *sample);

// Set the totals that are sums over rows. The other totals stay as they are.
void rec_rows_add_up(const struct rec_row *rows, size_t count, struct rec_totals *out);

// Free the arrays if the recording owns them, and zero it. Accepts a zeroed or borrowed recording.
void recording_release(struct recording *recording);

// Return the index of the first entry that belongs to `row` or a later row, in a table that is
// sorted by row (cells, buckets, cohorts). Each entry has `entry_bytes` and begins with the row.
size_t rec_first_entry_of_row(const void *table, size_t count, size_t entry_bytes, uint32_t row);

// By row: the index of its first entry in such a table; one more element is `count`. For visits to
// the entries of most rows, if they are not in the rows' order.
enum err rec_row_starts(const void *table,
                        size_t count,
                        size_t entry_bytes,
                        size_t row_count,
                        struct u32_vec *out) MUST_USE;

// Visit the entries of one row in such a table; `entry` points to each:
//   FOR_ENTRIES_OF_ROW (cell, recording->cells, recording->cell_count, row) {
#define FOR_ENTRIES_OF_ROW(entry, table, count, of_row)                                \
    for (const __typeof__(*(table)) *entry =                                           \
             (table) + rec_first_entry_of_row(table, count, sizeof(*(table)), of_row); \
         entry < (table) + (count) && entry->row == (of_row); entry++)
