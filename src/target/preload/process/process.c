// SPDX-License-Identifier: MIT
#include "target/preload/process/process.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/page_alloc.h"
#include "base/sys.h"
#include "session/books/block_words.h"
#include "session/recorder_wake.h"
#include "target/preload/process/process_entry.h"
#include "target/producer/book/book.h"
#include "target/producer/waiting/exit_wait.h"

enum process_verdict {
    VERDICT_UNDECIDED = 0,
    VERDICT_JOINING,
    VERDICT_JOINED,
    VERDICT_NO_SLOT,
    VERDICT_LEFT, // the session is over, or abandoned
    VERDICT_OFF,
};

// The state that a forked child inherits on purpose. Written only while joining.
struct process_image {
    struct session_mapping mapping;
    uint32_t pid; // of the process that joined last: this one or its nearest recorded ancestor
    uint32_t pid_namespace; // of that process: its inode number, or 0
    char name[16];
};

static struct process_page g_page_before_first_event;
static struct process_image g_image;
struct process_page *g_process = &g_page_before_first_event;

static const _Atomic uint32_t g_recording_before_first_event;
const _Atomic uint32_t *g_process_recording = &g_recording_before_first_event;

struct session_mapping *process_mapping(void)
{
    return &g_image.mapping;
}

const char *process_name(void)
{
    return g_image.name;
}

// Return whether this image is to wait at its exit. It need not be asked, because a short one may
// have passed its exit before R sees it. A filter might forbid the wait.
static bool waits_at_exit(const struct session_header *session)
{
    return g_image.pid == session->main_pid &&
           g_image.pid_namespace == session->recorder_namespace &&
           SYS_CALL(SYS_prctl, PR_GET_SECCOMP) == 0;
}

// The blocks of the image that executed this one are gone. The recorder may not know yet.
static void end_earlier_image(struct session_header *session, uint32_t index)
{
    for (uint32_t i = 0; i < SESSION_MAX_PROCESSES && g_image.pid_namespace != 0; i++) {
        const struct process_slot *slot = session_process(session, i);
        if (i != index && slot->pid == g_image.pid &&
            slot->pid_namespace == g_image.pid_namespace &&
            atomic_load_explicit(&slot->state, memory_order_relaxed) == PROCESS_ACTIVE) {
            book_leave_image(&g_process->words, session, i);
        }
    }
}

static long open_memory(const void *mapping)
{
    const struct session_mapping *session = mapping;
    return session_open_memory(&session->place);
}

// Whether the program may need the addresses that room for words takes. A child that is forked
// where no limit was set makes no system call for that: a sandbox may forbid it.
static bool is_short_of_addresses(void)
{
    // Relaxed: it orders nothing.
    return atomic_load_explicit(&g_image.mapping.is_lean, memory_order_relaxed) &&
           session_address_limit() < WORDS_LEAN_BELOW;
}

// Open the words of this process, by the number that names it there.
static void open_words(uint32_t number)
{
    uint64_t *mapped = process_entry_mapped_words();
    const struct words_source source = {.base = SESSION_WORDS_OFFSET,
                                        .open = open_memory,
                                        .context = &g_image.mapping,
                                        .mapped = mapped,
                                        .head = mapped == NULL ? g_image.mapping.header : NULL,
                                        .is_lean = is_short_of_addresses()};
    (void)!process_words_open(&g_process->words, &source, number,
                              process_entry_tiny_below()); // if not, blocks are counted as lost
}

// A child of fork has begun its own figure; an image that was executed has that of the one before.
static void note_joined_memory(struct process_notes *notes, bool is_forked)
{
    page_alloc_note_into(notes->ranges);
    // Relaxed: R reads them once the process has ended.
    atomic_store_explicit(&notes->joined_rss_kib, is_forked ? 0 : sys_highest_rss_kib(),
                          memory_order_relaxed);
    atomic_store_explicit(&notes->exit_rss_kib, 0, memory_order_relaxed);
}

// Fill the slot in and open the session to the hooks.
static void enter(uint32_t index, uint32_t parent_pid, uint32_t flags)
{
    struct session_header *session = g_image.mapping.header;
    struct process_slot *slot = session_process(session, index);
    slot->pid = g_image.pid;
    slot->parent_pid = parent_pid;
    slot->flags = flags;
    slot->pid_namespace = g_image.pid_namespace;
    atomic_store_explicit(&slot->exit_ms, 0, memory_order_relaxed); // of an earlier process
    atomic_store_explicit(&slot->exit_wait,
                          waits_at_exit(session) ? EXIT_WAIT_WANTED : EXIT_WAIT_NO,
                          memory_order_relaxed);
    note_joined_memory(session_notes(session, index), (flags & PROCESS_FORKED) != 0);
    slot->join_number = atomic_fetch_add_explicit(&session->join_count, 1, memory_order_relaxed);
    slot->start_ms = session_now_ms(session);
    // Release: the fields above are final for a recorder that acquires PROCESS_ACTIVE.
    atomic_store_explicit(&slot->state, PROCESS_ACTIVE, memory_order_release);
    // So that even a short life is sampled. Later there may be a seccomp filter.
    if ((flags & PROCESS_FORKED) == 0) {
        session_wake_recorder(session);
    }
    open_words(words_process_number(slot->join_number));
    if ((flags & PROCESS_FORKED) == 0) {
        end_earlier_image(session, index);
    }
    g_process_recording = &session->recording;
    g_process->index = index;
    atomic_store_explicit(&g_process->generation, ((uint64_t)index + 1) << 32,
                          memory_order_relaxed);
    // Release: g_image and the generation come first for a thread that sees the session.
    atomic_store_explicit(&g_process->session, session, memory_order_release);
}

// Join as a fresh image.
static enum process_verdict join_image(void)
{
    if (process_entry_find_session(&g_image.mapping) != ERR_OK) {
        return VERDICT_OFF;
    }
    (void)SYS_CALL(SYS_prctl, PR_GET_NAME, (long)g_image.name); // zeros if not
    return VERDICT_JOINED;
}

uint32_t process_pid_namespace(void)
{
    struct stat found;
    const long result = SYS_CALL(SYS_newfstatat, AT_FDCWD, (long)"/proc/self/ns/pid", (long)&found);
    return sys_failed(result) ? 0 : (uint32_t)found.st_ino;
}

struct session_header *process_followed_session(void)
{
    struct session_header *session = g_image.mapping.header;
    const bool is_followed =
        session != NULL && (session->flags & SESSION_FOLLOW_CHILDREN) != 0 &&
        atomic_load_explicit(&session->state, memory_order_relaxed) != SESSION_ENDED;
    return is_followed ? session : NULL;
}

// Find the session, once.
static bool look(void)
{
    if (!g_process->has_looked) {
        g_process->was_in = process_entry_is_in(&g_image.mapping);
        g_process->has_looked = g_process->was_in || join_image() != VERDICT_OFF;
    }
    return g_process->has_looked;
}

static enum process_verdict decide(void)
{
    if (!look()) {
        return VERDICT_OFF;
    }
    const bool was_in = g_process->was_in;
    const bool is_forked = process_entry_is_forked(was_in);
    struct session_header *session = g_image.mapping.header;
    if (is_forked && (session->flags & SESSION_FOLLOW_CHILDREN) == 0) {
        return VERDICT_OFF;
    }
    if (session_is_over(session)) {
        return VERDICT_LEFT;
    }
    uint32_t index;
    if (session_claim_process(session, &index) != ERR_OK) {
        return VERDICT_NO_SLOT;
    }
    // A forked child's parent is the process whose heap it has, not the adoptive parent that it
    // gets when its parent ends (daemons fork twice).
    const uint32_t parent_pid = was_in && is_forked ? g_image.pid : (uint32_t)sys_getppid();
    g_image.pid = (uint32_t)sys_getpid();
    if (!was_in || g_image.pid == 1) { // other pids are of the parent's namespace
        g_image.pid_namespace = process_pid_namespace();
    }
    enter(index, parent_pid, process_entry_flags(is_forked) | (is_forked ? PROCESS_FORKED : 0));
    return VERDICT_JOINED;
}

// Whether to try again to get a slot: all are taken, and the clock has moved.
static bool may_retry(void)
{
    const uint64_t now_ms =
        atomic_load_explicit(&g_image.mapping.header->clock_ms, memory_order_relaxed);
    return atomic_exchange_explicit(&g_process->retry_ms, now_ms, memory_order_relaxed) != now_ms;
}

// Take part again, in the slot of this process.
static void come_back(void)
{
    struct session_header *session = g_image.mapping.header;
    // Another thread may have left late, so the latest generation is not always the one left.
    const uint64_t latest = g_process->left_generation > g_process->back_generation
                                ? g_process->left_generation
                                : g_process->back_generation;
    g_process->back_generation = latest + 1;
    atomic_store_explicit(&g_process->generation, latest + 1, memory_order_relaxed);
    // Release: the generation comes first for a thread that sees the session.
    atomic_store_explicit(&g_process->session, session, memory_order_release);
}

// Whether this process, which has left the session, still has its slot there.
static bool has_slot(void)
{
    const struct process_slot *slot = session_process(g_image.mapping.header, g_process->index);
    // Relaxed: only the recorder frees it, when it takes this process for dead.
    return g_process->left_generation != 0 && slot->pid == g_image.pid &&
           atomic_load_explicit(&slot->state, memory_order_relaxed) == PROCESS_ACTIVE;
}

// Join, for the first time or again.
static enum process_verdict join(enum process_verdict before)
{
    if (before != VERDICT_LEFT || !has_slot()) {
        return decide();
    }
    come_back();
    return VERDICT_JOINED;
}

// Whether a process of that verdict may join now.
static bool may_join(enum process_verdict verdict)
{
    return verdict == VERDICT_UNDECIDED || verdict == VERDICT_JOINING ||
           verdict == VERDICT_JOINED ||
           (verdict == VERDICT_LEFT && !session_is_over(g_image.mapping.header)) ||
           (verdict == VERDICT_NO_SLOT && may_retry());
}

// Wait for the thread that is joining. That thread itself never waits.
static bool await_joining(void)
{
    // Acquire: pairs with the release in process_join.
    while (atomic_load_explicit(&g_process->verdict, memory_order_acquire) == VERDICT_JOINING) {
        (void)SYS_CALL(SYS_sched_yield);
    }
    return process_session() != NULL;
}

bool process_join(void)
{
    if (!process_entry_is_open()) {
        return false;
    }
    if (sys_is_forbidden()) {
        return false; // a child of a process under a seccomp filter
    }
    if (g_process == &g_page_before_first_event && !process_entry_page(&g_process)) {
        return false;
    }
    uint32_t verdict = atomic_load_explicit(&g_process->verdict, memory_order_relaxed);
    if (!may_join(verdict)) {
        return false;
    }
    const uint64_t blocked = signals_block();
    bool joined;
    const enum process_verdict before = verdict;
    if (verdict != VERDICT_JOINING && verdict != VERDICT_JOINED &&
        atomic_compare_exchange_strong_explicit(&g_process->verdict, &verdict, VERDICT_JOINING,
                                                memory_order_relaxed, memory_order_relaxed)) {
        const enum process_verdict decided = join(before);
        // Release: pairs with the acquire in await_joining.
        atomic_store_explicit(&g_process->verdict, decided, memory_order_release);
        joined = decided == VERDICT_JOINED;
    } else {
        joined = await_joining();
    }
    signals_restore(blocked);
    return joined;
}

void process_count_unrecorded(void)
{
    struct session_header *session = g_image.mapping.header;
    const uint32_t verdict = atomic_load_explicit(&g_process->verdict, memory_order_relaxed);
    if (verdict == VERDICT_NO_SLOT) {
        session_count(session, LOST_no_process_slot, 1);
    } else if (verdict == VERDICT_UNDECIDED && session != NULL && sys_is_forbidden() &&
               (session->flags & SESSION_FOLLOW_CHILDREN) != 0) {
        session_count(session, LOST_seccomp, 1);
    }
}

struct session_header *process_abandoned_session(void)
{
    struct session_header *session = g_image.mapping.header;
    // Relaxed: the flags guard no other data.
    return atomic_load_explicit(&g_process->verdict, memory_order_relaxed) == VERDICT_LEFT &&
                   session != NULL &&
                   atomic_load_explicit(&session->state, memory_order_relaxed) != SESSION_ENDED
               ? session
               : NULL;
}

void process_leave(void)
{
    const uint64_t generation = process_generation();
    if (generation != 0) { // else another thread was first
        g_process->left_generation = generation;
    }
    // Relaxed: the flags guard no other data.
    atomic_store_explicit(&g_process->verdict, VERDICT_LEFT, memory_order_relaxed);
    atomic_store_explicit(&g_process->session, NULL, memory_order_relaxed);
    atomic_store_explicit(&g_process->generation, 0, memory_order_relaxed);
}

void process_count(enum session_counter counter)
{
    session_count(g_image.mapping.header, counter, 1);
}

void process_note_exit(void)
{
    struct session_header *session = process_session();
    if (session != NULL) {
        struct process_slot *slot = session_process(session, g_process->index);
        book_leave(&g_process->words, session, g_process->index);
        const uint64_t now_ms = session_now_ms(session);
        atomic_store_explicit(&session_notes(session, g_process->index)->exit_rss_kib,
                              sys_highest_rss_kib(), memory_order_relaxed);
        // Relaxed: R reads it when the process has ended, or acquires EXIT_WAIT_WAITING after it.
        atomic_store_explicit(&slot->exit_ms, now_ms != 0 ? now_ms : 1, memory_order_relaxed);
        exit_wait_await(session, slot);
    }
}

void process_forgo_exit_note(void)
{
    struct session_header *session = process_session();
    if (session != NULL) {
        session_process(session, g_process->index)->flags &= ~(uint32_t)PROCESS_NOTES_EXIT;
    }
}

void process_note_confinement(void)
{
    struct session_header *session = process_session();
    if (session != NULL) {
        session_process(session, g_process->index)->flags |= PROCESS_CONFINED;
        (void)session_now_ms(session); // wakes a clock that rests, for the last time
    }
}

bool process_is_this(void)
{
    return process_session() != NULL && (uint32_t)sys_getpid() == g_image.pid;
}

void process_code_unloaded(void)
{
    // Relaxed: see process_generation().
    atomic_fetch_add_explicit(&g_process->generation, 1, memory_order_relaxed);
}
