// SPDX-License-Identifier: MIT
// agent_thread: the slots by which threads are found (session/way/agent/thread_way.h), and the end
// of a thread, which the agent does not notice: the recorder closes the lanes of threads that are
// gone.
//
// The first thread takes the slot apart. Any other takes the first free slot behind its place. A
// slot that already has the thread's pointer belonged to an ended thread or, in a forked child, to
// the parent: the thread takes it. If all are taken, it takes the slot of a thread whose lane the
// recorder has closed.
//
// Context: T, the slot's thread; a signal handler may come in between, and then one of the two has
// taken it. errno is kept. Failure: the events of a thread without a slot are lost, and counted as
// those of threads without a lane, because there are as many slots as lanes.
#include <stddef.h>

#include "base/sys.h"
#include "session/layout.h"
#include "target/preload/process/process.h"
#include "target/preload/process/thread_exit.h"
#include "thread_way.h"

#define PROBES_MAX 64u

static bool is_id_at(uint64_t thread_pointer, int32_t offset, uint32_t thread_id)
{
    const uint64_t at = thread_pointer + (uint64_t)offset;
    return sys_is_readable(at & ~(uint64_t)7) && *(const volatile uint32_t *)at == thread_id;
}

// Find the only word of the descriptor that is the thread's id.
static int32_t search_id(uint64_t thread_pointer, uint32_t thread_id)
{
    int32_t found = ARCH_TID_OFFSET_NONE;
    for (int32_t offset = ARCH_TID_OFFSET_MIN; offset < ARCH_TID_OFFSET_END; offset += 4) {
        if (is_id_at(thread_pointer, offset, thread_id)) {
            if (found != ARCH_TID_OFFSET_NONE) {
                return ARCH_TID_OFFSET_NONE;
            }
            found = offset;
        }
    }
    return found;
}

static int32_t find_tid_offset(uint64_t thread_pointer)
{
    static const int32_t usual[] = ARCH_TID_OFFSETS;
    const uint32_t thread_id = (uint32_t)sys_gettid();
    for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
        if (is_id_at(thread_pointer, usual[i], thread_id)) {
            return usual[i];
        }
    }
    return search_id(thread_pointer, thread_id);
}

// Whether the slot's thread has no lane, or its lane is another thread's by now.
static bool is_left(const struct agent_thread *thread)
{
    const struct lane_header *lane =
        thread->state != NULL
            ? (const struct lane_header *)((const char *)thread->state - LANE_HEADER_BYTES)
            : NULL;
    return lane == NULL || lane->thread_id != thread->thread_id ||
           atomic_load_explicit(&lane->state, memory_order_relaxed) != LANE_ACTIVE;
}

// Count the lane of the slot's previous thread as one that the recorder has still to close. A wrong
// count, as in a forked child, lasts until the recorder counts them.
static void note_end_of_owner(const struct agent_thread *thread)
{
    if (!is_left(thread)) {
        struct session_header *session = (struct session_header *)g_agent_page.session;
        (void)atomic_fetch_add_explicit(&session->ended_lanes, 1, memory_order_relaxed);
    }
}

static struct agent_thread *begin(struct agent_thread *thread, uint64_t thread_pointer)
{
    note_end_of_owner(thread);
    thread->state = NULL;
    thread->pass = (struct thread_pass){0};
    thread->outer_call = 0;
    thread->outer_mapping = 0;
    thread->thread_id = (uint32_t)sys_gettid();
    thread->tid_word = agent_thread_tid_word(thread_pointer);
    return thread;
}

// Take the slot whose owner is there, if that has thread pointer `from`.
static bool take(_Atomic uint64_t *owner, uint64_t from, uint64_t thread_pointer)
{
    // Relaxed: a slot holds nothing that another thread has written for its next owner.
    return atomic_compare_exchange_strong_explicit(owner, &from, thread_pointer,
                                                   memory_order_relaxed, memory_order_relaxed);
}

// Use a slot that has the thread's pointer already.
static struct agent_thread *use(struct agent_thread *thread, uint64_t thread_pointer)
{
    return thread->tid_word == agent_thread_tid_word(thread_pointer)
               ? thread
               : begin(thread, thread_pointer);
}

// Return the slot behind the thread's place that is its own, or that was free. NULL: none.
static struct agent_thread *find_slot(struct agent_thread *threads, uint64_t thread_pointer)
{
    const uint32_t first = agent_thread_place(thread_pointer);
    for (uint32_t i = 0; i < PROBES_MAX; i++) {
        struct agent_thread *thread = threads + (first + i) % AGENT_THREADS;
        if (atomic_load_explicit(&thread->thread_pointer, memory_order_relaxed) == thread_pointer) {
            return use(thread, thread_pointer);
        }
        if (take(&thread->thread_pointer, 0, thread_pointer)) {
            return begin(thread, thread_pointer);
        }
    }
    for (uint32_t i = 0; i < PROBES_MAX; i++) {
        struct agent_thread *thread = threads + (first + i) % AGENT_THREADS;
        const uint64_t owner = atomic_load_explicit(&thread->thread_pointer, memory_order_relaxed);
        if (is_left(thread) && take(&thread->thread_pointer, owner, thread_pointer)) {
            return begin(thread, thread_pointer);
        }
    }
    return NULL;
}

struct agent_thread *agent_thread_take(uint64_t thread_pointer)
{
    if (atomic_load_explicit(&g_agent_page.tid_offset, memory_order_relaxed) == 0) {
        // Every thread finds the same.
        atomic_store_explicit(&g_agent_page.tid_offset, find_tid_offset(thread_pointer),
                              memory_order_relaxed);
    }
    // All threads come here before they record: of an earlier attachment nothing is left.
    g_process = (struct process_page *)g_agent_page.process_page;
    struct agent_attachment *attachment = agent_attachment();
    if (atomic_load_explicit(&attachment->first_pointer, memory_order_relaxed) == thread_pointer) {
        return use(&attachment->first, thread_pointer);
    }
    if (take(&attachment->first_pointer, 0, thread_pointer)) {
        return begin(&attachment->first, thread_pointer);
    }
    struct agent_thread *thread = find_slot(attachment->threads, thread_pointer);
    if (thread == NULL) {
        session_count((struct session_header *)g_agent_page.session, LOST_no_lane, 1);
    }
    return thread;
}

void thread_exit_arm(void)
{
}
