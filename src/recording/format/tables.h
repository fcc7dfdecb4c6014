// SPDX-License-Identifier: MIT
// tables: a recording in memory, as columns of plain structs.
//
// This is what the recorder hands to the writer, what the reader hands to the profile, and what an
// importer of a foreign format fills in. docs/format/recording.md says how it looks on disk.
//
//   processes 1--n threads 1--n rows n--1 nodes n--1 frames n--1 modules
//                                |                     |
//                          cells, size and         symbols (function, file, line; innermost first)
//                          lifetime buckets
//
// Invariants (recording_verify checks them):
//   every index is below the count of the table it points to, or is REC_NONE where that is allowed;
//   node 0 is the root, its parent is REC_NONE, and every other node's parent is below itself;
//   rows are unique by (thread, node); sum over rows = totals for each additive cost;
//   frees <= allocations and freed_bytes <= allocated_bytes in every row;
//   sum of a row's cells = the row; sum of its size buckets = its allocations.
// Derived, never stored: live at the end ("leaked") = allocated - freed.
// Ownership: a struct recording that came from the reader or from a recording_builder owns its
// arrays (recording_release); one that the recorder builds for the writer borrows them. Context: H.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bucket.h"

#define REC_NONE UINT32_MAX

// Index into strings; 0 is the empty string. Not necessarily UTF-8: paths and names are bytes.
typedef uint32_t rec_string; // the one typedef: an id is not a count

struct rec_strings {
    const char *data;        // all strings, each ended by a zero byte
    const uint64_t *offsets; // where each begins in data
    uint32_t count;          // at least 1
    uint64_t data_bytes;
};

enum rec_state {
    REC_STATE_RUNNING = 0,  // a checkpoint; the run went on after it
    REC_STATE_FINISHED = 1, // everything that was recorded ended, and all of it is here
    REC_STATE_STOPPED = 2,  // recording was stopped while the program went on
};

// What the source does not say. The figures concerned are 0, or what follows from those that are
// known, and must not be shown as if they had been seen. Nothing of it in a recording of our own.
enum rec_unknown {
    REC_UNKNOWN_ALLOCATIONS = 1 << 0, // how often and how much over time; nor what was freed
    REC_UNKNOWN_TEMPORARY = 1 << 1,
    REC_UNKNOWN_PEAK = 1 << 2,
    REC_UNKNOWN_LEAKED = 1 << 3, // what was live at the end
    REC_UNKNOWN_BLOCKS = 1 << 4, // how many blocks the bytes are
    REC_UNKNOWN_OWN_PEAK = 1 << 5,
    REC_UNKNOWN_TIME = 1 << 6, // nor how long the run was
    REC_UNKNOWN_LIFETIMES = 1 << 7,
    REC_UNKNOWN_THREADS = 1 << 8, // one entry stands for all
    REC_UNKNOWN_NAMES = 1 << 9,   // of frames that have none: nobody has looked for them
};

struct rec_meta {
    uint32_t state;      // enum rec_state
    uint32_t page_bytes; // of the recorded machine
    uint32_t cpu_count;
    uint32_t pid;        // of the program that was started, 0 if unknown
    int32_t exit_status; // its wait status as waitpid gives it, -1 while it runs
    uint32_t max_frames;
    uint64_t start_unix_ns;    // CLOCK_REALTIME at time 0
    uint64_t runtime_ms;       // from the start to the last event or the end of the last process
    uint64_t memory_bytes;     // of the recorded machine
    uint64_t checkpoint_count; // checkpoints written before this state of the file
    uint64_t checkpoint_interval_ms; // when the next one begins, after this one; 0: there is none
    rec_string tool_version;
    rec_string host;
    rec_string kernel; // uname: sysname release machine
    rec_string libc;
    rec_string program;       // path of the executable
    rec_string command_line;  // of the program, arguments quoted as a shell would need them
    rec_string source_format; // "cairn", or the foreign format that this was imported from
    rec_string suppressions;  // LSan rules that the program holds, a line each
    uint32_t unknown;         // enum rec_unknown
};

// Exact unless peak_error_bytes or left_out_allocations say otherwise. See docs/accuracy.md.
struct rec_totals {
    uint64_t allocations;     // successful allocation calls; a realloc counts as one
    uint64_t allocated_bytes; // sum of the sizes asked for
    uint64_t frees;           // of recorded blocks; a realloc counts as one
    uint64_t freed_bytes;
    uint64_t temporary; // allocations whose thread's next event was their own free
    uint64_t temporary_bytes;
    uint64_t peak_bytes;       // highest sum of live blocks over all processes
    uint64_t peak_error_bytes; // the true peak lies within peak_bytes +- this, and is at least
                               // peak_at_least_bytes; 0 with one thread,
                               // in 95 of 100 recordings if allocations were left out
    uint64_t peak_time_ms;
    uint64_t peak_blocks;   // live blocks at the peak
    uint64_t unknown_frees; // frees of blocks that were never seen (inherited over fork, foreign)
    uint64_t events;        // allocations and frees counted; a realloc is both
    // --overflow=sample: 0 where every event was recorded, else all that is above and in rows is an
    // estimate. Exact: allocations - stand_in_allocations + left_out_allocations; bytes likewise.
    uint64_t left_out_allocations; // not recorded; others stand for them
    uint64_t left_out_bytes;
    uint64_t left_out_frees;       // of such blocks
    uint64_t sampled_allocations;  // recorded ones that stand for several
    uint64_t stand_in_allocations; // for so many beside themselves
    uint64_t stand_in_bytes;
    uint64_t coarsest_weight; // the most that one stands for; 0 or 1: none stands for others
    uint64_t peak_standard_error_bytes; // of the sum of the blocks that were live at the peak
    uint64_t peak_at_least_bytes;       // 0: not said, then peak_bytes - peak_error_bytes
};

enum rec_process_flags {
    REC_PROCESS_FORKED = 1 << 0,        // began as a copy of its parent
    REC_PROCESS_OWN_ALLOCATOR = 1 << 1, // its malloc was not recorded, see the report's health
    REC_PROCESS_EXECED = 1 << 2,        // replaced by exec; a later entry goes on if it is recorded
    REC_PROCESS_MAIN = 1 << 3,          // the program that was started
    REC_PROCESS_GO = 1 << 4,            // a Go program that uses C: only C's heap is recorded
};

// One image of one process: an exec makes a new entry with the same pid and the next epoch.
struct rec_process {
    uint32_t pid;
    uint32_t parent_pid;
    uint32_t parent;     // index, or REC_NONE if the parent was not recorded
    uint32_t epoch;      // execs before this one in the same process, as far as recorded
    uint32_t flags;      // enum rec_process_flags
    int32_t exit_status; // wait status if known, else -1
    uint64_t start_ms;
    uint64_t end_ms;
    uint64_t peak_bytes;     // of this process alone
    uint64_t peak_rss_bytes; // highest seen, 0 if never sampled
    rec_string executable;
    rec_string command_line;
    rec_string allocator; // path of the object that served malloc
    uint64_t left_ms;     // 1 + when its blocks left the heap, for it had ended or executed another
                          // program; 0: they are in it to the end of the recording
};

enum rec_thread_flags {
    REC_THREAD_MERGED = 1 << 0, // stands for several threads of one name, beyond the cap
};

struct rec_thread {
    uint32_t process;
    uint32_t thread_id;
    uint32_t flags;        // enum rec_thread_flags
    uint32_t merged_count; // threads that this entry stands for, 1 without merging
    uint64_t start_ms;
    uint64_t end_ms;
    rec_string name;
};

struct rec_module {
    rec_string path;          // as the dynamic linker named it; "" for code without a file
    rec_string build_id;      // lower-case hexadecimal, "" if it has none
    rec_string symbol_source; // file that the names came from, "" if none
    rec_string symbol_advice; // what to do to get better names, "" if nothing
    uint32_t is_executable;   // 1 for a main program
    uint32_t frames;          // distinct frames in it
    uint32_t frames_with_function;
    uint32_t frames_with_line;
};

enum rec_frame_flags {
    REC_FRAME_CUT = 1 << 0,      // pseudo frame: the middle of a deep stack was left out here
    REC_FRAME_EXACT_PC = 1 << 1, // offset is the instruction itself, not a return address
    REC_FRAME_LOADED = 1 << 2, // offset is the pc although there is a module: nobody knows its bias
};

// A distinct code location. Its symbols are symbols[symbol_first .. + symbol_count): the chain of
// inlined functions, innermost first, the last being the real function. None if not symbolized.
struct rec_frame {
    uint32_t module; // REC_NONE: code that belongs to no file, offset is the pc
    uint32_t flags;  // enum rec_frame_flags
    uint64_t offset; // pc - load bias: an address in the ELF file's own terms
    uint32_t symbol_first;
    uint32_t symbol_count;
    uint64_t function_start; // as offset, of a function without a name; 0: unknown, or it has one
};

struct rec_symbol {
    rec_string function; // demangled, "" if unknown
    rec_string file;     // "" if unknown
    uint32_t line;       // 0 if unknown
};

// A stack is named by its leaf node. The root has no frame; its children are thread entries.
struct rec_node {
    uint32_t parent;
    uint32_t frame;
};

// What one stack did on one thread.
struct rec_row {
    uint32_t thread;
    uint32_t node;
    uint64_t allocations;
    uint64_t allocated_bytes;
    uint64_t frees; // of blocks that this row allocated, whoever freed them
    uint64_t freed_bytes;
    uint64_t temporary;
    uint64_t temporary_bytes;
    uint64_t peak_bytes; // live at the global peak
    uint64_t peak_blocks;
    uint64_t own_peak_bytes; // highest that this row alone held, to the millisecond
};

// What a row did in one time slice. Sorted by row, then slice. A slice lasts slice_ms.
struct rec_cell {
    uint32_t row;
    uint32_t slice;
    uint64_t allocations;
    uint64_t allocated_bytes;
    uint64_t frees; // in this slice, of blocks of this row born in any slice
    uint64_t freed_bytes;
    uint64_t temporary;
};

// One bucket of a row's histogram. Sorted by row, then bucket. Buckets are logarithmic with four to
// an octave: rec_bucket_of() and rec_bucket_low() are the only definition.
struct rec_bucket {
    uint32_t row;
    uint32_t bucket;
    uint64_t count;
    uint64_t bytes;
};

// Blocks of a row by the slices of their birth and death, for those that outlived their slice.
struct rec_cohort {
    uint32_t row;
    uint32_t born_slice;
    uint32_t freed_slice; // REC_NONE: alive at the end
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
    uint64_t live_bytes;     // at its end, of the processes that run then; when none does any more,
                             // what the last one held when it ended
    uint64_t live_max_bytes; // highest within it, to the millisecond
};

// From /proc/PID/smaps_rollup and stat, for one process at one moment.
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
    uint64_t break_bytes;  // virtual: from the first to the last break, the area of brk
    uint64_t data_bytes;   // virtual: private and writable, the break's among them
    uint64_t mapped_bytes; // virtual: what the program's own calls had mapped
};

enum rec_mapping_kind {
    REC_MAPPING_ANONYMOUS = 1, // private memory without a file
    REC_MAPPING_FILE = 2,
    REC_MAPPING_SHARED = 3, // shared memory without a name
    REC_MAPPING_BREAK = 4,  // the program moved its break itself
};

// Whose a resident page is, from what is known best to what is known least.
enum rec_part_kind {
    REC_PART_LIVE = 1,     // in live heap blocks, as far as was asked for
    REC_PART_ROUNDING = 2, // in live heap blocks beyond that, and their heads
    REC_PART_KEPT = 3,     // the rest of the allocator's areas: free, or its own
    REC_PART_MAPPED = 4,   // anonymous memory that the program mapped itself
    REC_PART_STACK = 5,    // stacks of threads
    REC_PART_FILE = 6,     // mapped files, code among them
    REC_PART_SHARED = 7,   // shared memory
    REC_PART_OWN = 8,      // cairn's own, in the recorded process
    REC_PART_REST = 9,     // none of these
};
#define REC_PART_KINDS 9

enum rec_memory_snapshot_flags {
    REC_LOOK_PEAK = 1 << 0,      // when all processes together were largest
    REC_LOOK_LAST = 1 << 1,      // the last one
    REC_LOOK_ASKED = 1 << 2,     // somebody wanted it
    REC_LOOK_ESTIMATED = 1 << 3, // which pages of the heap are resident could not be read
    REC_LOOK_AT_EXIT = 1 << 4,   // the process was waiting to end
};

// A look at the whole memory map of one process (/proc/PID/smaps). All looks of one moment have one
// time. The bytes by kind add up to rss_bytes.
struct rec_memory_snapshot {
    uint64_t time_ms;
    uint32_t process;
    uint32_t flags;           // enum rec_memory_snapshot_flags
    uint64_t rss_bytes;       // sum over the map
    uint64_t swap_bytes;      // beside it
    uint64_t requested_bytes; // in live heap blocks, resident or not
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

// What a look found, put together by kind, name and stack. Only some looks have parts: those at the
// peak, the last ones and those that were asked for. Sorted by look.
struct rec_part {
    uint32_t look;
    uint32_t kind;   // enum rec_part_kind
    uint32_t node;   // who mapped it, or REC_NONE
    rec_string path; // of a file, or as the kernel names it; "" if it has no name
    uint32_t areas;  // mappings of which it consists, or parts of some
    uint32_t is_estimate;
    uint64_t virtual_bytes;
    uint64_t rss_bytes;
    uint64_t swap_bytes;
};

// What one stack mapped by calls of its own to mmap and its kin, page by page. Not heap: no row, no
// total counts it. Bytes that were inherited over fork count as mapped by the child.
struct rec_mapping {
    uint32_t process;
    uint32_t node;
    uint32_t kind; // enum rec_mapping_kind
    uint32_t reserved;
    uint64_t mappings; // calls
    uint64_t mapped_bytes;
    uint64_t unmapped_bytes; // of those, whoever unmapped them or mapped something else there
    uint64_t own_peak_bytes; // most that was mapped at one time
};

enum rec_counter_kind {
    REC_COUNTER_LOSS = 0, // events missing from the profile; zero in a healthy run
    REC_COUNTER_NOTE = 1, // something less good than it could be, nothing missing
};

// What one stack reported that is no allocation (cairn_event); its leaf's function is the name. Not
// heap: no row, no total counts it.
struct rec_adhoc {
    uint32_t process;
    uint32_t node;
    uint64_t events;
    uint64_t weight; // their sum, in a unit of the program's own
};

struct rec_counter {
    rec_string name; // as in JSON: snake_case
    rec_string text; // one phrase for people
    uint32_t kind;   // enum rec_counter_kind
    uint32_t reserved;
    uint64_t value;
};

enum rec_event_kind {
    REC_EVENT_ALLOCATION = 1,  // of a block; a realloc is a free and an allocation
    REC_EVENT_FREE = 2,        // of the oldest block that lives at that address
    REC_EVENT_FREE_LATEST = 3, // of the block of the event before this: another thread had freed it
    REC_EVENT_TEMPORARY = 4,   // the thread's latest allocation, of `row` and `size_bytes`, was one
    REC_EVENT_UNKNOWN_FREE = 5, // where no block is known; if one turns up, a free of it follows
    REC_EVENT_PROCESS_END = 6,  // what it still held is no part of the heap any more
};

// One event of the log that --events makes; no part of struct recording (event_reader.h).
struct rec_event {
    uint64_t time_ms;
    uint64_t address;
    uint64_t size_bytes; // of ALLOCATION and TEMPORARY, else 0
    uint32_t kind;       // enum rec_event_kind
    uint32_t process;
    uint32_t thread; // who did it; REC_NONE if it never allocated, or is not known
    uint32_t row;    // of ALLOCATION and TEMPORARY, else REC_NONE
    uint32_t others; // of the same: how many blocks this one stands for beside itself
    uint32_t reserved;
};

enum rec_block_flags {
    REC_BLOCK_END = 1 << 0,  // live at the end of its process, or of the recording
    REC_BLOCK_PEAK = 1 << 1, // live at the global peak
};

// One block, if blocks were asked for (--blocks). Sorted by row, address, born_ms.
struct rec_block {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t born_ms;
    uint64_t freed_ms; // 0 if it is REC_BLOCK_END
    uint32_t row;
    uint32_t flags; // enum rec_block_flags; at least one of them
};

enum rec_mark_kind {
    REC_MARK_USER = 0,  // a person's, by `cairn ctl FILE mark TEXT`, or the program's, by cairn.h
    REC_MARK_START = 1, // recording began, or went on
    REC_MARK_STOP = 2,  // it was stopped: what is allocated from here to the next start is missing
    REC_MARK_PHASE = 3, // the program begins something else
};

// A moment worth a line on the time line. In the order of time.
struct rec_mark {
    uint64_t time_ms;
    uint32_t kind;   // enum rec_mark_kind
    rec_string text; // "" unless a person gave one
};

// Programs that a recorded process executed and that are not in the recording, by program and
// reason. Sorted by neither. Bounded: what is beyond the first few hundred is in one entry without
// a program for each reason.
struct rec_unrecorded {
    rec_string program;   // its path, or the end of it; "" for those that are not named
    rec_string reason;    // as in JSON: snake_case
    rec_string text;      // one phrase for people
    uint32_t pid;         // of the first one, 0 if it is not known
    uint64_t execs;       // how often
    uint64_t descendants; // processes that these started, as far as they were seen: a lower bound
};

#define REC_TABLES(X)                                      \
    X(rec_process, processes, process_count)               \
    X(rec_thread, threads, thread_count)                   \
    X(rec_module, modules, module_count)                   \
    X(rec_frame, frames, frame_count)                      \
    X(rec_symbol, symbols, symbol_count)                   \
    X(rec_node, nodes, node_count)                         \
    X(rec_row, rows, row_count)                            \
    X(rec_cell, cells, cell_count)                         \
    X(rec_bucket, size_buckets, size_bucket_count)         \
    X(rec_bucket, lifetime_buckets, lifetime_bucket_count) \
    X(rec_cohort, cohorts, cohort_count)                   \
    X(rec_slice, slices, slice_count)                      \
    X(rec_rss_sample, rss_samples, rss_sample_count)       \
    X(rec_mapping, mappings, mapping_count)                \
    X(rec_adhoc, adhoc, adhoc_count)                       \
    X(rec_memory_snapshot, looks, look_count)              \
    X(rec_part, parts, part_count)                         \
    X(rec_counter, counters, counter_count)                \
    X(rec_mark, marks, mark_count)                         \
    X(rec_unrecorded, unrecorded, unrecorded_count)        \
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
    struct recording_owner *owner; // of the arrays; NULL if they are borrowed
};

// Histogram buckets (base/bucket.h): bucket b >= 1 holds rec_bucket_low(b) <= v <
// rec_bucket_low(b+1). rec_bucket_low() of anything beyond the last one is UINT64_MAX.
#define REC_BUCKET_COUNT   BUCKET_COUNT
#define REC_BUCKET_SINGLES BUCKET_SINGLES
#define REC_BUCKET_OCTAVE  BUCKET_OCTAVE

static inline uint32_t rec_bucket_of(uint64_t value)
{
    return bucket_of(value);
}

uint64_t rec_bucket_low(uint32_t bucket);

// The bytes of a string, zero-terminated, borrowed from the recording; "" for an id out of range.
const char *rec_string_get(const struct recording *recording, rec_string id);

// The counter of this name, 0 if there is none.
uint64_t rec_counter_value(const struct recording *recording, const char *name);

// Frees the arrays if the recording owns them, and zeroes it; accepts a zeroed or borrowed one.
void recording_release(struct recording *recording);

// The first entry of a table that is sorted by row (cells, buckets, cohorts) that belongs to `row`
// or to one behind it. Each entry has `entry_bytes` and begins with the row.
size_t rec_first_entry_of_row(const void *table, size_t count, size_t entry_bytes, uint32_t row);
