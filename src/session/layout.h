// SPDX-License-Identifier: MIT
// layout: the memory that the recorder and the recorded processes share, byte by byte.
//
// The recorder creates one memfd for a session; every recorded process maps all of it at an address
// of its own choice. Once a process has joined, it exchanges nothing else with the recorder: no
// pipe, no lock.
//
//   0            session_header            one page
//   4 KiB        process_slot[1024]        one slot for each recorded process image
//   68 KiB       process_notes[1024]       the pages that cairn took in each process
//   196 KiB      exec_note[128]            programs that were executed unrecorded
//   ...          lane[4096]                LANE_STRIDE each, sparse: untouched pages cost nothing
//
//   one lane:    lane_header               positions and owner, both sides; the book's head
//                producer's state          dictionaries, remembered walk; its thread's alone,
//                                          but for the first word, LANE_GUARD_OFFSET
//                book                      what it has counted and not sent (book_layout.h)
//                ring                      records of wire.h, single producer, single consumer
//
// Writers: each field names its only writer, R (recorder), P (a recorded process, any thread) or T
// (the one thread that owns the lane). P claims slots and lanes with one compare and swap; only R
// gives them back. Trust: R treats everything as hostile, because the program may overwrite it. T
// trusts R. Lifetime: the memory outlives every writer, so a process that dies loses nothing that
// it wrote.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/page_alloc.h"
#include "session/books/block_words.h"
#include "session/books/book_layout.h"
#include "session/books/shared_sum.h"
#include "session/session_env.h"

#define SESSION_MAGIC          0x6e7269616373ULL // "scairn", little endian
#define SESSION_VERSION        27
#define SESSION_MAX_PROCESSES  1024u
#define SESSION_MAX_LANES      4096u
#define SESSION_PAGE_BYTES     4096u
#define SESSION_PROCESS_OFFSET SESSION_PAGE_BYTES
// The first MiB and the book. 64 KiB of it are the path caches, a part of the state.
#define LANE_STRIDE            ((1u << 20) + (64u << 10) + LANE_BOOK_BYTES)
#define LANE_HEADER_BYTES      4096u
#define LANE_RING_BYTES_MIN    (16u << 10)
#define LANE_RING_BYTES_MAX    (512u << 10)
#define LANE_RING_OFFSET       (LANE_STRIDE - LANE_RING_BYTES_MAX)
#define LANE_BOOK_BYTES        (192u << 10) // BOOK_BYTES and more, so that rings stay aligned
#define LANE_BOOK_OFFSET       (LANE_RING_OFFSET - LANE_BOOK_BYTES)
#define LANE_STATE_BYTES       (LANE_BOOK_OFFSET - LANE_HEADER_BYTES)
#define LANE_GUARD_OFFSET      LANE_HEADER_BYTES
#define SESSION_LANES_OFFSET   (256u << 10)
#define SESSION_BYTES          (SESSION_LANES_OFFSET + (uint64_t)SESSION_MAX_LANES * LANE_STRIDE)
#define SESSION_WORDS_OFFSET   SESSION_BYTES // block_words.h
#define SESSION_FILE_BYTES_MAX (SESSION_WORDS_OFFSET + WORDS_FILE_BYTES)
#define SESSION_FRAMES_MAX     1536u // upper limit of session_header.max_frames: so many fit a lane
#define SESSION_FRAMES_DEFAULT 512u

// With more unread lanes of ended threads a new thread waits for the recorder (lane_backlog.h).
#define LANES_UNREAD_MAX 64u

// Counters of events that are missing from the profile, or of what they are missing of where their
// number is not known. All are zero in a healthy run.
#define SESSION_LOSS_COUNTERS(X)                                                                  \
    X(no_process_slot, "events of processes beyond the 1024th at one time")                       \
    X(no_lane, "events of threads beyond the 4096th at one time, or of a program without room")   \
    X(reentrant, "events in signal handlers that interrupted or left cairn")                      \
    X(seccomp, "events of threads and processes begun under a seccomp filter")                    \
    X(namespaces, "linker namespaces (dlmopen), whose events --all-allocators records")           \
    X(late_namespaces, "times dlmopen ran constructors, whose events --all-allocators records")   \
    X(no_words, "allocations for which a process had no memory of words")                         \
    X(missed_allocations, "allocations after the recorder stopped responding")                    \
    X(missed_frees, "frees after the recorder stopped responding; their blocks appear as leaked") \
    X(corrupt_lane, "lanes closed because the program overwrote them")                            \
    X(corrupt_counter, "counters that the program overwrote")

// Counters of weaknesses that lose no event.
#define SESSION_NOTE_COUNTERS(X)                                                   \
    X(frame_pointer_walks, "stacks walked by frame pointer for lack of tables")    \
    X(unfinished_stacks, "stacks that end before the thread's entry")              \
    X(cut_stacks, "stacks deeper than --max-frames, truncated in the middle")      \
    X(producer_waits, "times a thread waited for the recorder")                    \
    X(lane_timeout, "threads that gave up waiting for the recorder")               \
    X(exit_timeout, "exits that gave up waiting for the last memory snapshot")     \
    X(unnamed_execs, "further programs that ran unrecorded, without a name here")  \
    X(late_hooks, "times a library ran before cairn had looked for its allocator") \
    X(unwind_checks, "stacks that CAIRN_CHECK_UNWIND walked a second time")        \
    X(unwind_differences, "stacks that CAIRN_CHECK_UNWIND found to be wrong")

enum session_counter {
#define X(name, text) LOST_##name,
    SESSION_LOSS_COUNTERS(X)
#undef X
#define X(name, text) NOTE_##name,
    SESSION_NOTE_COUNTERS(X)
#undef X
        SESSION_COUNTER_COUNT
};

enum session_state {
    SESSION_STARTING = 0,
    SESSION_RUNNING = 1,
    SESSION_ENDED = 2,     // R: recording has ended; hooks pass through
    SESSION_ABANDONED = 3, // P: found R dead; hooks count events. R lives after all: RUNNING again
};

enum session_flags {
    SESSION_FOLLOW_CHILDREN = 1 << 0, // forked and executed children join the session
    SESSION_OVERFLOW_SAMPLE = 1 << 1, // a full ring thins the recorded events (byte_sampler.h)
    SESSION_CHECK_UNWIND = 1 << 2,    // compare every incremental walk with a full one
    SESSION_FOLLOW_EXECS = 1 << 3,    // R puts the agent into programs that are executed
    SESSION_PYTHON = 1 << 4,          // stacks have the frames of CPython
    SESSION_BLOCKS = 1 << 5,          // threads send each block of a peak (block_records.h)
};

enum session_door {
    DOOR_CLOSED = 0,
    DOOR_WANTED = 1,  // P
    DOOR_OPEN = 2,    // R, release
    DOOR_REFUSED = 3, // R: it cannot be opened
};
#define SESSION_PYTHON_REFUSED ((uint32_t)1 << 31)
#define DOOR_PATH_BYTES        100u // with a zero byte

// Selects the events that hooks record. A thread that has seen a recorded block sees a value that
// records its free: the values are of one atomic, and never return to NOTHING.
enum session_recording {
    SESSION_RECORD_ALL = 0,
    SESSION_RECORD_FREES = 1,   // stopped: frees of recorded blocks are still recorded
    SESSION_RECORD_NOTHING = 2, // not started yet: no recorded block exists
    // As ALL and FREES: some blocks. From the start with SESSION_OVERFLOW_SAMPLE or sample_bytes,
    // else once words take too much memory.
    SESSION_RECORD_SAMPLE = 3,
    SESSION_RECORD_SAMPLE_FREES = 4,
};

#define SESSION_CLOCK_RESTS ((uint64_t)1 << 63) // in session_header.clock_ms

struct session_header {
    uint64_t magic;         // R, before any process joins
    uint32_t version;       // R
    uint32_t flags;         // R: enum session_flags
    uint64_t session_bytes; // R
    uint32_t max_frames;    // R: frames kept of one stack
    uint32_t recorder_pid;  // R
    _Atomic uint32_t state; // R and P: enum session_state
    // R: inode number of the pid namespace of recorder_pid, 0 if unknown.
    uint32_t recorder_namespace;

    // Time since the session began; the only clock of a hook. R advances it about every
    // millisecond, so it is R's heartbeat too. With SESSION_CLOCK_RESTS it is a moment in which no
    // thread recorded, and stands still until a thread reads it (recorder_wake.h).
    _Alignas(64) _Atomic uint64_t clock_ms;
    // R: enum session_recording. Next to the clock, which every hook reads anyway.
    _Atomic uint32_t recording;
    // R: the level of sampling for lack of memory (sampling_level.h). A thread takes the higher one
    // of this and its ring's.
    _Atomic uint32_t memory_level;
    // R: how often it has forgotten stacks (--max-memory). A thread that sees another number than
    // before sends its stacks anew.
    _Atomic uint32_t stack_losses;

    // P adds 1 and wakes R (FUTEX_WAKE, shared) when a lane is half full; R sleeps on it.
    _Alignas(64) _Atomic uint32_t recorder_wake;

    _Alignas(64) _Atomic uint64_t counters[SESSION_COUNTER_COUNT]; // P and R add

    // A set bit marks a lane in use. P sets with compare and swap, R clears.
    _Alignas(64) _Atomic uint64_t lane_bitmap[SESSION_MAX_LANES / 64];

    // Lanes of ended threads, modulo 2^32: T adds 1 to `ended` when it closes its lane. R sets
    // `recycled` so that the difference is the number of those that it has not recycled, wakes its
    // sleepers, and counts the lanes anew in each pass, so a wrong value does not last.
    _Atomic uint32_t ended_lanes;
    _Atomic uint32_t recycled_lanes;

    // Number of processes that have joined. P adds 1, and takes the old value as its slot's
    // join_number.
    _Alignas(64) _Atomic uint64_t join_count;

    // P adds 1 for the number of a note in exec_note, and 1 when a note is ready.
    _Atomic uint64_t exec_count;

    // A socket in the file system, for processes of another network namespace (session_door.h).
    _Atomic uint32_t door;           // enum session_door
    char door_path[DOOR_PATH_BYTES]; // R, before DOOR_OPEN

    // R: one moment in so many allocated bytes chooses a block to record (byte_sampler.h); 0: every
    // block is recorded.
    uint64_t sample_bytes;
    uint64_t sample_seed; // R: of the threads' random numbers

    // P: the version of an interpreter that was found with SESSION_PYTHON, major << 8 | minor or as
    // python_versions.h has it; 0: none was found. SESSION_PYTHON_REFUSED: its frames are not read.
    _Atomic uint32_t python_version;

    // R's child, before it executes the program: its pid, in the namespace of recorder_pid. R, as
    // it attaches: that of the first process. Its images wait at their exit (exit_wait.h).
    uint32_t main_pid;

    uint64_t clock_start_ns; // R: CLOCK_MONOTONIC when clock_ms was 0

    // R: the id of its clock's thread while that runs. The kernel adds FUTEX_OWNER_DIED when it is
    // killed, so that a thread sees that without a system call.
    _Atomic uint32_t recorder_life;

    // R: the value of CAIRN_SESSION, ended by a zero byte: processes that the session was mapped
    // for find its memory by it.
    char place[SESSION_ENV_BYTES_MAX];

    // P: the live bytes of all processes, and their peak. R takes out those of processes that have
    // ended.
    struct shared_sum sum;

    // R, with SESSION_BLOCKS: the latest peak that it has seen, see block_records.h.
    _Alignas(64) _Atomic uint64_t seen_peak;
};
_Static_assert(sizeof(struct session_header) <= SESSION_PAGE_BYTES, "one page");
_Static_assert(SESSION_LANES_OFFSET % PAGE_LARGEST == 0 && LANE_STRIDE % PAGE_LARGEST == 0,
               "lanes are mapped and given back alone");

enum process_state {
    PROCESS_FREE = 0,
    PROCESS_CLAIMED = 1, // P, by compare and swap: being filled in
    PROCESS_ACTIVE = 2,  // P, release: the fields below are final
    PROCESS_REFUSED = 3, // P: joined only to report why it cannot be recorded
};

enum process_flags {
    PROCESS_FORKED = 1 << 0,        // began by fork: inherits its parent's image and heap
    PROCESS_OWN_ALLOCATOR = 1 << 1, // the executable exports malloc, so it does not call our hooks
    PROCESS_GO = 1 << 2,            // the executable is a Go program that uses C
    PROCESS_ATTACHED = 1 << 3,      // it ran before it was recorded
    PROCESS_NOTES_EXIT = 1 << 4,    // it notes its exit, unless it is killed
    PROCESS_CONFINED = 1 << 5,      // its threads cannot wake R (a seccomp filter of its own)
    PROCESS_SETTINGS = 1 << 6,      // the bits from PROCESS_SETTINGS_SHIFT on are known
};
#define PROCESS_SETTINGS_SHIFT 8 // enum runtime_setting (session/runtime_settings.h)

// The best moment for the last memory snapshot of a process is when it begins to exit: see
// exit_wait.h.
enum exit_wait {
    EXIT_WAIT_NO = 0,
    EXIT_WAIT_WANTED = 1,  // P, as it joins, or R: the process is to wait
    EXIT_WAIT_WAITING = 2, // P: waits
    EXIT_WAIT_DONE = 3,    // R: the process may continue
};

// One image of one process. An exec claims a new slot with the same pid.
struct process_slot {
    _Alignas(64) _Atomic uint32_t state; // enum process_state
    uint32_t pid;                        // P, as seen in its own pid namespace
    uint32_t parent_pid;                 // P
    uint32_t flags;                      // P: enum process_flags
    uint64_t start_ms;                   // P: clock_ms when it joined
    // P: clock_ms when its image began to exit, at least 1; 0 if unseen: a lower limit of its
    // lifetime.
    _Atomic uint64_t exit_ms;
    uint64_t join_number; // P: orders the images of one process
    // enum exit_wait. P or R asks for it, P waits, R ends the wait.
    _Atomic uint32_t exit_wait;
    uint32_t pid_namespace; // P: inode number of its pid namespace, 0 if unknown
};
_Static_assert(sizeof(struct process_slot) == 64, "a cache line");

// The memory that the library took for itself in one process, and the process's highest resident
// memory. Written by P; ranges beyond the table are not noted.
struct process_notes {
    _Atomic uint64_t ranges[PAGE_NOTES_MAX]; // in the format of page_alloc.h
    // As the kernel had it when the image joined and when it began to exit, 0 if unseen. The image
    // itself has reached the second figure if it exceeds the first: that one may be of the image
    // before.
    _Atomic uint64_t joined_rss_kib;
    _Atomic uint64_t exit_rss_kib;
};
#define SESSION_NOTES_OFFSET \
    (SESSION_PROCESS_OFFSET + SESSION_MAX_PROCESSES * sizeof(struct process_slot))

enum exec_note_state {
    EXEC_NOTE_FREE = 0,
    EXEC_NOTE_CLAIMED = 1, // P, by compare and swap: being filled in
    EXEC_NOTE_READY = 2,   // P, release: the fields below are final
    EXEC_NOTE_HEARD = 3,   // R: it follows the exec, and frees the entry afterwards
};

// Whether R traces the exec in order to record the program (exec_follow.h).
enum exec_follow_answer {
    EXEC_FOLLOW_NO = 0,     // P: not wanted. R: it will not
    EXEC_FOLLOW_WANTED = 1, // P: waits
    EXEC_FOLLOW_TRACED = 2, // R: P may execute the program
    EXEC_FOLLOW_LEFT = 3,   // P: has not waited for R
};

// A program that is about to be executed, and cannot load the library, or libraries that a process
// with the agent has loaded (exec_note.h).
#define SESSION_EXEC_NOTES   128u
#define EXEC_NOTE_PATH_BYTES 200u
struct exec_note {
    _Atomic uint32_t state;  // enum exec_note_state
    uint32_t obstacle;       // P: enum exec_obstacle; EXEC_NONE takes `number` back
    uint32_t pid;            // P: of the process that executes it, in its own namespace; 0: unknown
    uint32_t pid_namespace;  // P: inode number, 0 if unknown
    uint32_t thread_id;      // P: of the thread that executes it, or that makes the child
    uint32_t makes_child;    // P: 1: the thread's next child executes it (posix_spawn)
    _Atomic uint32_t follow; // P and R: enum exec_follow_answer
    uint32_t has_loaded;     // P: 1: it executes nothing, but has loaded libraries (exec_note.h)
    uint64_t number;         // P
    uint64_t time_ms;        // P: clock_ms
    uint64_t joins;          // P: join_count
    char path[EXEC_NOTE_PATH_BYTES]; // P: the end of the path, ended by a zero byte
};
_Static_assert(sizeof(struct exec_note) == 256, "whole cache lines");
#define SESSION_EXEC_NOTES_OFFSET \
    (SESSION_NOTES_OFFSET + SESSION_MAX_PROCESSES * sizeof(struct process_notes))
_Static_assert(SESSION_EXEC_NOTES_OFFSET + SESSION_EXEC_NOTES * sizeof(struct exec_note) <=
                   SESSION_LANES_OFFSET,
               "slots and notes end before the lanes");

enum lane_state {
    LANE_FREE = 0,
    LANE_ACTIVE = 1, // T, release: owner fields are final and the ring is open
    LANE_CLOSED = 2, // T, release: its thread has ended; R drains the rest and recycles the lane
};

// The recorder's response to a query of a thread (stats_query.h).
#define LANE_ANSWER_VALUES 8u
#define LANE_SCOPES_MAX    8u // number of scopes that can follow a thread's peak at one time
struct lane_answer {
    uint32_t asked;            // T: number of queries so far
    _Atomic uint32_t answered; // R, release after the values: the number of the query
    _Atomic uint64_t values[LANE_ANSWER_VALUES]; // R
};

struct lane_header {
    _Atomic uint32_t state;         // T, and R on recycling: enum lane_state
    uint32_t process_index;         // T: its slot
    uint32_t thread_id;             // T: gettid
    _Atomic uint32_t highest_level; // T: at which blocks were chosen, so far (sampling_level.h)
    uint64_t start_ms;              // T
    uint64_t self_address;          // T: pthread_self(), the top of a thread's stack
    // T: changes with each event that a signal handler leaves behind; 0: all have been sent.
    _Atomic uint64_t unsent_of_handlers;
    uint32_t keeps_book; // T, before its first event

    // Positions count bytes since the lane was opened, are multiples of 8 and never wrap. read_pos
    // <= write_pos <= read_pos + ring_bytes; the byte at p is ring[p % ring_bytes].
    _Alignas(64) _Atomic uint64_t write_pos; // T, release after the records; R acquires
    // Power of two. T doubles it when the unread bytes have the same places then, before its next
    // release of write_pos, so R reads it after that acquire.
    _Atomic uint32_t ring_bytes;
    // T: allocations that were not chosen (byte_sampler.h).
    _Atomic uint64_t unsampled_allocations;
    _Atomic uint64_t unsampled_bytes;
    // T: events that passed through its hooks while the session was SESSION_ABANDONED.
    _Atomic uint64_t missed_allocations;
    _Atomic uint64_t missed_frees;
    _Alignas(64) _Atomic uint64_t read_pos; // R, release after it has copied; T acquires
    // T sets lane_waiting_for() and sleeps on it when the ring is full; R sets 0 and wakes T when
    // it has read that far.
    _Alignas(64) _Atomic uint32_t producer_waiting;

    _Alignas(64) struct book_head book; // see there for the writers
    _Atomic uint64_t unknown_frees;     // T: of blocks without a word

    // T: what it has not added to the session's sum (book.h). R under the lock of the book.
    _Alignas(64) struct sum_part sum_part;
    _Alignas(64) struct lane_answer answer;
};
_Static_assert(sizeof(struct lane_header) <= LANE_HEADER_BYTES, "one page");
_Static_assert(BOOK_BYTES <= LANE_BOOK_BYTES, "the book fits");
_Static_assert(WORDS_PROCESSES == SESSION_MAX_PROCESSES, "one share for each");

// Return producer_waiting of a thread that waits until read_pos is at least `awaited_pos`; not 0.
static inline uint32_t lane_waiting_for(uint64_t awaited_pos)
{
    return (uint32_t)awaited_pos | 1;
}

// Return whether the thread with this producer_waiting waits for this read_pos or an earlier one.
static inline bool lane_is_awaited(uint32_t waiting, uint64_t read_pos)
{
    return waiting != 0 && (int32_t)((uint32_t)read_pos - (waiting & ~1u)) >= 0;
}

// Add to one of the session's counters. An atomic read-modify-write: not for the common path.
static inline void
session_count(struct session_header *session, enum session_counter counter, uint64_t amount)
{
    // Relaxed: counters order nothing.
    atomic_fetch_add_explicit(&session->counters[counter], amount, memory_order_relaxed);
}

// Return how many lanes of ended threads the recorder has still to read and recycle, about.
static inline uint32_t session_unread_lanes(const struct session_header *session)
{
    // Relaxed: the counts guard no other data. R's may be ahead for a moment.
    const uint32_t recycled = atomic_load_explicit(&session->recycled_lanes, memory_order_relaxed);
    const uint32_t unread =
        atomic_load_explicit(&session->ended_lanes, memory_order_relaxed) - recycled;
    return unread <= INT32_MAX ? unread : 0;
}

static inline bool session_is_over(const struct session_header *session)
{
    // Relaxed: the flag guards no other data.
    return atomic_load_explicit(&session->state, memory_order_relaxed) >= SESSION_ENDED;
}

static inline struct process_slot *session_process(void *session, uint32_t index)
{
    return (struct process_slot *)((char *)session + SESSION_PROCESS_OFFSET) + index;
}

static inline struct process_notes *session_notes(void *session, uint32_t index)
{
    return (struct process_notes *)((char *)session + SESSION_NOTES_OFFSET) + index;
}

static inline struct exec_note *session_exec_note(void *session, uint32_t index)
{
    return (struct exec_note *)(void *)((char *)session + SESSION_EXEC_NOTES_OFFSET) + index;
}

static inline struct lane_header *session_lane(void *session, uint32_t index)
{
    return (struct lane_header *)((char *)session + SESSION_LANES_OFFSET +
                                  (uint64_t)index * LANE_STRIDE);
}

// Return the guard of the lane's thread: not 0 while one of its hooks records (T, release when it
// leaves).
static inline _Atomic uint64_t *lane_guard(struct lane_header *lane)
{
    return (_Atomic uint64_t *)(void *)((char *)lane + LANE_GUARD_OFFSET);
}

// Return the book of the lane's thread.
static inline struct book_tables *lane_book_tables(struct lane_header *lane)
{
    return (struct book_tables *)(void *)((char *)lane + LANE_BOOK_OFFSET);
}

static inline uint8_t *lane_ring(struct lane_header *lane)
{
    return (uint8_t *)lane + LANE_RING_OFFSET;
}

// Return LANE_STATE_BYTES of memory for the owning thread's own use; zero when the lane is claimed.
static inline uint8_t *lane_producer_state(struct lane_header *lane)
{
    return (uint8_t *)lane + LANE_HEADER_BYTES;
}
