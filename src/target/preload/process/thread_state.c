// SPDX-License-Identifier: MIT
#include "target/preload/process/thread_state.h"

#include <linux/prctl.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/page.h"
#include "base/sys.h"
#include "target/preload/process/process.h"
#include "target/preload/python/python_stack.h"
#include "target/producer/entry/lane_entry.h"
#include "target/producer/waiting/lane_backlog.h"
#include "target/unwind/unwind.h"

#define MODULES_BYTES     (MODULE_DICTIONARY_MAX * sizeof(struct module_entry))
#define NAMES_MAX         16384u // of one table
#define FRAMES_REMEMBERED 1024u  // of a walk, lower limit
#define UNWIND_BYTES_BUDGET \
    (LANE_STATE_BYTES - PAGE_GRAIN - MODULES_BYTES - DEFERRED_BYTES - (128u << 10))

// The parts of a lane's state, in bytes from its beginning.
struct thread_layout {
    uint32_t max_frames;
    uint32_t capacity; // remembered frames
    size_t unwind;
    size_t modules;
    size_t names;
    size_t rows; // of stack slots
    size_t deferred;
    uint32_t names_max;
};

static size_t whole_pages(size_t bytes)
{
    return grain_end(bytes);
}

static struct thread_layout plan_layout(uint32_t wanted_frames)
{
    struct thread_layout l = {.unwind = PAGE_GRAIN};
    l.max_frames = wanted_frames < SESSION_FRAMES_MAX ? wanted_frames : SESSION_FRAMES_MAX;
    l.max_frames = l.max_frames < 8 ? 8 : l.max_frames; // lower limit of the unwinder
    l.capacity = l.max_frames < FRAMES_REMEMBERED ? FRAMES_REMEMBERED : l.max_frames;
    while (unwind_thread_bytes(l.capacity, l.max_frames) > UNWIND_BYTES_BUDGET) {
        l.capacity -= l.capacity / 8;
        l.max_frames = l.max_frames < l.capacity ? l.max_frames : l.capacity;
    }
    l.modules = l.unwind + whole_pages(unwind_thread_bytes(l.capacity, l.max_frames));
    l.names = l.modules + whole_pages(MODULES_BYTES);
    l.deferred = LANE_STATE_BYTES - DEFERRED_BYTES;
    l.names_max = NAMES_MAX;
    while ((2 * sizeof(uint64_t) + sizeof(uint32_t)) * l.names_max > l.deferred - l.names) {
        l.names_max /= 2;
    }
    l.rows = l.names + 2 * sizeof(uint64_t) * l.names_max;
    return l;
}

// Return the process's generation, or, if another thread has just ended the recording, an
// impossible one.
static uint64_t current_generation(void)
{
    const uint64_t generation = process_generation();
    return generation >> 32 != 0 ? generation : UINT64_MAX;
}

// Read the thread's name. False, and `name` is unchanged, if system calls are forbidden.
static bool get_name(char name[static THREAD_NAME_BYTES])
{
    return !sys_failed(SYS_CALL(SYS_prctl, PR_GET_NAME, (long)name));
}

static struct thread_state *fill_lane(struct lane_header *lane)
{
    uint8_t *memory = lane_producer_state(lane);
    struct thread_home *home = (struct thread_home *)(void *)memory;
    struct thread_state *t = &home->state;
    struct session_header *session = process_mapping()->header; // another thread may leave
    const struct thread_layout l = plan_layout(session->max_frames);
    lane->self_address = thread_way_descriptor(); // before its first event
    lane_producer_init(&t->producer, session, lane);
    if (process_words_are_open(&g_process->words)) {
        book_begin(&t->producer, &g_process->words, (uint32_t *)(void *)(memory + l.rows));
    }
    // With a given seed a thread draws the same numbers in each run.
    block_choice_init(&t->choice, &t->producer,
                      session->sample_seed + (uint64_t)((uint8_t *)lane - (uint8_t *)session));
    stack_dictionary_init(&t->stacks,
                          &(struct stack_dictionary_memory){
                              .first_names = home->names,
                              .grown_names = (uint64_t *)(void *)(memory + l.names),
                              .names_max = l.names_max,
                              .first_modules = home->modules,
                              .grown_modules = (struct module_entry *)(void *)(memory + l.modules),
                          });
    t->unwind = unwind_thread_init(memory + l.unwind, l.capacity, l.max_frames);
    unwind_thread_grow_to(t->unwind, UNWIND_FRAMES_MAX);
    t->python = NULL;
    t->max_frames = l.max_frames;
    t->deferred.memory = memory + l.deferred;
    t->extras = session->flags & (SESSION_CHECK_UNWIND | SESSION_PYTHON);
    (void)get_name(t->name); // zeros if not
    t->name_pending = memcmp(t->name, process_name(), THREAD_NAME_BYTES) != 0;
    t->generation = current_generation();
    return t;
}

struct thread_state *thread_state_open(void)
{
    if (sys_is_forbidden()) {
        process_count(LOST_seccomp);
        return NULL;
    }
    const struct thread_state *before = thread_way_state(); // in a forked child the parent's
    struct session_header *session = process_mapping()->header;
    lane_backlog_await(session, session_process(session, g_process->index)->pid_namespace);
    const uint64_t blocked = signals_block();
    if (thread_way_state() != before) { // a signal handler has opened it during the wait
        signals_restore(blocked);
        return thread_way_state();
    }
    struct lane_header *lane;
    const enum err result =
        session_claim_lane(process_mapping(), g_process->index, (uint32_t)sys_gettid(), &lane);
    thread_way_set_state(result == ERR_OK ? fill_lane(lane) : NULL);
    signals_restore(blocked);
    if (result != ERR_OK) {
        process_count(LOST_no_lane);
    }
    return thread_way_state();
}

void thread_state_renew(struct thread_state *t)
{
    if (t->generation < g_process->back_generation) {
        // What handlers had left before the process left the session is lost.
        atomic_store_explicit(&t->producer.lane->unsent_of_handlers, 0, memory_order_relaxed);
    }
    deferred_forget_walkers(&t->deferred);
    lane_producer_rewind(&t->producer);
    (void)lane_recover(&t->producer); // if false, the next event fails too
    stack_dictionary_reset(&t->stacks);
    t->generation = current_generation();
}

void thread_state_close(struct thread_state *t)
{
    char name[THREAD_NAME_BYTES] = {0};
    if (!get_name(name)) {
        memcpy(name, t->name, sizeof(name));
    }
    if (t->name_pending || memcmp(name, t->name, THREAD_NAME_BYTES) != 0) {
        const struct bytes text = {.data = (const uint8_t *)name,
                                   .len = strnlen(name, THREAD_NAME_BYTES)};
        lane_describe(&t->producer, WIRE_TEXT_THREAD_NAME, text, false);
    }
    thread_way_set_state(NULL);
    unwind_thread_release(t->unwind);
    python_stack_release(&t->python);
    (void)lane_flush(&t->producer); // false: recording has ended
    book_end(&t->producer);
    lane_producer_close(&t->producer);
}
