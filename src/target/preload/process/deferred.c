// SPDX-License-Identifier: MIT
#include "target/preload/process/deferred.h"

#include <stdbool.h>

#include "base/compiler.h"
#include "base/page_alloc.h"
#include "target/preload/process/process.h"

#define WALKER_COUNT 8u

// Mapped on demand; a forked child inherits the mappings and a zeroed process_page.walkers.
static _Atomic(void *) g_walkers[WALKER_COUNT];

// Take a free walker; WALKER_COUNT if there is none.
static uint32_t take_walker(struct deferred *d)
{
    for (uint32_t i = 0; i < WALKER_COUNT; i++) {
        const uint32_t bit = 1u << i;
        // Acquire: pairs with give_walkers; its memory is ours alone from here on.
        if ((atomic_fetch_or_explicit(&g_process->walkers, bit, memory_order_acquire) & bit) == 0) {
            // Relaxed: read on this very thread.
            atomic_fetch_or_explicit(&d->walkers, bit, memory_order_relaxed);
            return i;
        }
    }
    return WALKER_COUNT;
}

static void give_walkers(struct deferred *d, uint32_t bits)
{
    // Our bit first: if this code is left between the two, it must not give back another's walker
    // later.
    atomic_fetch_and_explicit(&d->walkers, ~bits, memory_order_relaxed);
    // Release: pairs with take_walker.
    atomic_fetch_and_explicit(&g_process->walkers, ~bits, memory_order_release);
}

void deferred_forget_walkers(struct deferred *d)
{
    const uint32_t left = atomic_load_explicit(&d->walkers, memory_order_relaxed);
    if (UNLIKELY(left != 0)) {
        give_walkers(d, left);
    }
}

static struct unwind_thread *prepare_walker(uint32_t index, uint32_t max_frames)
{
    // Relaxed: only the walker's owner gets here.
    void *memory = atomic_load_explicit(&g_walkers[index], memory_order_relaxed);
    if (memory == NULL) {
        memory = page_alloc(unwind_thread_bytes(max_frames, max_frames));
        atomic_store_explicit(&g_walkers[index], memory, memory_order_relaxed);
    }
    return memory != NULL ? unwind_thread_init(memory, max_frames, max_frames) : NULL;
}

static struct deferred_event *event_at(const struct deferred *d, uint32_t at)
{
    return (struct deferred_event *)(void *)(d->memory + at);
}

static uint32_t used_of(uint64_t room)
{
    return (uint32_t)room;
}

// Relaxed, like all accesses here: they are on one thread.
static bool change_room(struct deferred *d, uint64_t from, uint64_t to)
{
    return atomic_compare_exchange_strong_explicit(&d->room, &from, to, memory_order_relaxed,
                                                   memory_order_relaxed);
}

// Move `used` past events whose writers have not done so yet, since we interrupted them, or never
// will, and return the room.
static uint64_t skip_interrupted(struct deferred *d)
{
    for (;;) {
        const uint64_t room = atomic_load_explicit(&d->room, memory_order_relaxed);
        if (used_of(room) > DEFERRED_BYTES - sizeof(struct deferred_event)) {
            return room;
        }
        const uint32_t taken =
            atomic_load_explicit(&event_at(d, used_of(room))->bytes, memory_order_relaxed);
        if (taken == 0) {
            return room;
        }
        (void)change_room(d, room, room + taken);
    }
}

// Take room for an event. If there is none, close the buffer until it is empty, so that no event is
// kept without those before it. Returns NULL then.
static struct deferred_event *take_room(struct deferred *d, uint32_t bytes)
{
    for (;;) {
        const uint64_t room = skip_interrupted(d);
        const uint32_t at = used_of(room);
        if (at > DEFERRED_BYTES || bytes > DEFERRED_BYTES - at) {
            if (change_room(d, room, room | DEFERRED_CLOSED)) {
                return NULL;
            }
            continue;
        }
        struct deferred_event *event = event_at(d, at);
        uint32_t taken = 0;
        if (atomic_compare_exchange_strong_explicit(&event->bytes, &taken, bytes,
                                                    memory_order_relaxed, memory_order_relaxed)) {
            // Fails if a handler that interrupted us here has done it for us.
            (void)change_room(d, room, room + bytes);
            return event;
        }
    }
}

// Take room and write the event there. False if there is no room.
static bool
write_event(struct deferred *d, const struct event *event, const struct unwind_walk *walk)
{
    const uint32_t bytes =
        (uint32_t)(sizeof(struct deferred_event) + walk->count * sizeof(struct unwind_frame));
    struct deferred_event *out = take_room(d, bytes);
    if (out == NULL) {
        return false;
    }
    out->count = walk->count;
    out->flags = walk->flags;
    out->name = walk->name;
    out->event = *event;
    if (event->kind == EVENT_MAPPING) {
        out->mapping = ((const struct mapping_event *)(const void *)event)->change;
    }
    if (walk->count > 0) { // a free has no frames at all
        __builtin_memcpy(out->frames, walk->frames, walk->count * sizeof(struct unwind_frame));
    }
    atomic_signal_fence(memory_order_release);
    // Same thread: see the fence.
    atomic_store_explicit(&out->state, DEFERRED_READY, memory_order_relaxed);
    return true;
}

static bool put_with_stack(struct deferred *d,
                           const struct event *event,
                           const struct unwind_regs *caller,
                           uint32_t max_frames)
{
    const uint32_t index = take_walker(d);
    if (index == WALKER_COUNT) {
        return false;
    }
    bool written = false;
    struct unwind_thread *walker = prepare_walker(index, max_frames);
    if (walker != NULL) {
        struct unwind_walk walk;
        unwind_thread_walk(walker, caller, &walk);
        written = write_event(d, event, &walk);
    }
    give_walkers(d, 1u << index);
    return written;
}

void deferred_put(struct deferred *d,
                  const struct event *event,
                  const struct unwind_regs *caller,
                  uint32_t max_frames)
{
    const struct unwind_walk no_walk = {.count = 0};
    const bool written = event->kind == EVENT_FREE ? write_event(d, event, &no_walk)
                                                   : put_with_stack(d, event, caller, max_frames);
    if (!written) {
        process_count(LOST_reentrant);
    }
}

// Send an event if it is ready. Count one whose writing or sending was left half way.
static void send_event(struct deferred_event *event,
                       void (*send)(void *context, const struct deferred_event *event),
                       void *context)
{
    const uint32_t state = atomic_load_explicit(&event->state, memory_order_relaxed);
    if (state == DEFERRED_READY) {
        atomic_signal_fence(memory_order_acquire);
        atomic_store_explicit(&event->state, DEFERRED_SENDING, memory_order_relaxed);
        send(context, event);
    } else if (state != DEFERRED_SENT) {
        process_count(LOST_reentrant);
    }
    atomic_store_explicit(&event->state, DEFERRED_SENT, memory_order_relaxed);
}

// Send the events between `at` and `end`.
static void send_range(struct deferred *d,
                       uint32_t at,
                       uint32_t end,
                       void (*send)(void *context, const struct deferred_event *event),
                       void *context)
{
    while (at + sizeof(struct deferred_event) <= end) {
        struct deferred_event *event = event_at(d, at);
        const uint32_t bytes = atomic_load_explicit(&event->bytes, memory_order_relaxed);
        if (bytes == 0) {
            return; // closed before the end of the memory
        }
        send_event(event, send, context);
        at += bytes;
    }
}

void deferred_drain(struct deferred *d,
                    void (*send)(void *context, const struct deferred_event *event),
                    void *context)
{
    deferred_forget_walkers(d);
    // Handlers may take more room at any time, which makes the exchanges fail. This function may be
    // left at any time: the next call continues where `room` points.
    for (;;) {
        const uint64_t room = skip_interrupted(d);
        const uint32_t used = used_of(room);
        const uint32_t end = used < DEFERRED_BYTES ? used : DEFERRED_BYTES;
        send_range(d, (uint32_t)(room >> 32), end, send, context);
        const uint64_t all_sent = (uint64_t)end << 32 | used;
        if (!change_room(d, room, all_sent)) {
            continue;
        }
        __builtin_memset(d->memory, 0, end); // free room must be zero
        if (change_room(d, all_sent, 0)) {
            return;
        }
    }
}
