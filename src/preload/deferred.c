// SPDX-License-Identifier: MIT
// deferred: see deferred.h.
#include "preload/deferred.h"

#include <stdbool.h>

#include "base/compiler.h"
#include "base/page_alloc.h"
#include "preload/process.h"

#define WALKER_COUNT 8u

// Mapped on demand; a forked child inherits the mappings and a zeroed process_page.walkers.
static _Atomic(void *) g_walkers[WALKER_COUNT];

// Takes a walker that nobody else uses; WALKER_COUNT if there is none.
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
    // First ours: whoever leaves us between the two must not give another's back later.
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

// Reserves room and writes the event there. False if there is none.
static bool
write_event(struct deferred *d, const struct event *event, const struct unwind_walk *walk)
{
    const uint32_t bytes =
        (uint32_t)(sizeof(struct deferred_event) + walk->count * sizeof(struct unwind_frame));
    // Relaxed: only handlers on this very thread compete; they run to their end before we go on.
    const uint32_t at = atomic_fetch_add_explicit(&d->used, bytes, memory_order_relaxed);
    if (at > DEFERRED_BYTES || bytes > DEFERRED_BYTES - at) {
        return false;
    }
    struct deferred_event *out = (struct deferred_event *)(void *)(d->memory + at);
    out->bytes = bytes;
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
    atomic_store_explicit(&out->is_ready, 1, memory_order_relaxed); // same thread: see the fence
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
        session_count(process_session(), LOST_reentrant, 1);
    }
}

void deferred_drain(struct deferred *d,
                    void (*send)(void *context, const struct deferred_event *event),
                    void *context)
{
    deferred_forget_walkers(d);
    uint32_t at = 0;
    uint32_t used = atomic_load_explicit(&d->used, memory_order_relaxed);
    do {
        const uint32_t end = used < DEFERRED_BYTES ? used : DEFERRED_BYTES;
        while (at + sizeof(struct deferred_event) <= end) {
            struct deferred_event *event = (struct deferred_event *)(void *)(d->memory + at);
            if (atomic_load_explicit(&event->is_ready, memory_order_relaxed) == 0) {
                break; // overflowed, and counted as such, or abandoned
            }
            atomic_signal_fence(memory_order_acquire);
            send(context, event);
            at += event->bytes;
        }
        // Zeros, so that whatever is reserved next is not ready before it is written; also behind
        // an abandoned event. An interrupt between this and the exchange reserves behind `used` and
        // makes the exchange fail.
        __builtin_memset(d->memory, 0, end);
        // Relaxed: same thread.
    } while (!atomic_compare_exchange_strong_explicit(&d->used, &used, 0, memory_order_relaxed,
                                                      memory_order_relaxed));
}
