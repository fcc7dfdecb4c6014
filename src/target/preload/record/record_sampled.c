// SPDX-License-Identifier: MIT
#include "target/preload/record/record_sampled.h"

#include "base/page_alloc.h"
#include "target/preload/process/missed_events.h"
#include "target/preload/process/process.h"
#include "target/producer/entry/lane_entry.h"
#include "target/producer/sampler.h"

static _Atomic(struct unsampled_blocks *) g_unsampled_blocks;

// Return the table of this process's unsampled blocks; NULL: there is none yet, and `is_needed` is
// false, or there is no memory. A forked child inherits its parent's table, whose blocks are not
// the child's.
static struct unsampled_blocks *unsampled_blocks_here(bool is_needed)
{
    const uint64_t owner = process_generation() >> 32;
    // Acquire: pairs with the release below; it is zeroed, and has its owner.
    struct unsampled_blocks *table =
        atomic_load_explicit(&g_unsampled_blocks, memory_order_acquire);
    if (table != NULL && (table->owner == owner || owner == 0)) {
        return table; // 0: another thread has just ended the recording
    }
    struct unsampled_blocks *fresh = is_needed ? page_alloc(UNSAMPLED_BYTES) : NULL;
    if (fresh == NULL) {
        return NULL;
    }
    fresh->owner = owner;
    struct unsampled_blocks *old = table;
    if (!atomic_compare_exchange_strong_explicit(&g_unsampled_blocks, &table, fresh,
                                                 memory_order_acq_rel, memory_order_acquire)) {
        page_free(fresh, UNSAMPLED_BYTES); // another thread was first
        return table;
    }
    if (old != NULL) {
        page_free(old, UNSAMPLED_BYTES); // an inherited table, which no thread has used here
    }
    return fresh;
}

static bool is_over(bool is_sent, enum event_kind kind)
{
    if (!is_sent) {
        process_leave();
        missed_events_count(kind);
    }
    return !is_sent;
}

bool record_sampled_free(struct thread_state *t, uint64_t address)
{
    struct lane_producer *p = &t->producer;
    if (is_over(lane_enter(p), EVENT_FREE)) {
        return false;
    }
    t->last_freed = address;
    if (sampler_forgets(&t->sampler, unsampled_blocks_here(false), address)) {
        lane_forget_latest(p);
        return true;
    }
    const uint64_t from = p->pos;
    const bool is_sent = lane_free(p, address);
    lane_producer_note_free(p, from);
    return !is_over(is_sent, EVENT_FREE);
}

bool record_sampled_takes(struct thread_state *t, const struct event *event, uint32_t *level)
{
    struct lane_producer *p = &t->producer;
    if (event->kind == EVENT_REALLOC) {
        p->given_stamp = event->freed.stamp;
        const bool is_sent = record_sampled_free(t, event->old_address);
        p->given_stamp = event->stamp;
        if (!is_sent) {
            missed_events_count(EVENT_ALLOC);
            return false;
        }
    }
    if (is_over(lane_enter(p), EVENT_ALLOC)) {
        return false;
    }
    t->last_allocated = event->address;
    struct unsampled_blocks *table = unsampled_blocks_here(p->level != 0);
    if (sampler_takes(&t->sampler, table, event->address, event->size_bytes, level)) {
        return true;
    }
    lane_forget_latest(p);
    return false;
}

void record_sampled_send(struct thread_state *t,
                         const struct event *event,
                         uint32_t slot,
                         uint32_t level)
{
    struct lane_producer *p = &t->producer;
    if (slot == STACK_SLOT_NONE) {
        missed_events_count(EVENT_ALLOC);
        return;
    }
    const uint64_t size_bytes = event->size_bytes;
    const bool is_sent = level == 0
                             ? lane_allocate(p, event->address, size_bytes, slot)
                             : lane_allocate_sampled(p, event->address, size_bytes, slot, level);
    (void)is_over(is_sent, EVENT_ALLOC);
}
