// SPDX-License-Identifier: MIT
#include "target/preload/record/record_bytes.h"

#include "base/page_alloc.h"
#include "target/preload/process/missed_events.h"
#include "target/preload/process/process.h"
#include "target/producer/entry/lane_entry.h"

struct record_bytes g_record_bytes;

// Return the set of this process; NULL: there is no memory for one.
static struct sampled_blocks *blocks_here(void)
{
    // Acquire: pairs with the release below.
    struct sampled_blocks *blocks =
        atomic_load_explicit(&g_record_bytes.blocks, memory_order_acquire);
    if (LIKELY(blocks != NULL)) {
        return blocks;
    }
    struct sampled_blocks *fresh = page_alloc(SAMPLED_BLOCKS_BYTES);
    if (fresh == NULL) {
        atomic_store_explicit(&g_record_bytes.is_refused, true, memory_order_relaxed);
        return NULL;
    }
    sampled_blocks_init(fresh);
    if (!atomic_compare_exchange_strong_explicit(&g_record_bytes.blocks, &blocks, fresh,
                                                 memory_order_acq_rel, memory_order_acquire)) {
        page_free(fresh, SAMPLED_BLOCKS_BYTES); // another thread was first
        return blocks;
    }
    return fresh;
}

bool record_bytes_takes_out(uint64_t address)
{
    // Acquire: pairs with the release after it was initialized.
    struct sampled_blocks *blocks =
        atomic_load_explicit(&g_record_bytes.blocks, memory_order_acquire);
    return blocks != NULL && sampled_blocks_may_have(blocks, address) &&
           sampled_blocks_take(blocks, address);
}

void record_bytes_put_back(uint64_t address)
{
    struct sampled_blocks *blocks = blocks_here();
    if (blocks != NULL) {
        sampled_blocks_add(blocks, address);
    }
}

// Count a new block; true: it is chosen, and in the set.
static bool choose(struct thread_state *t, uint64_t address, uint64_t size_bytes)
{
    struct lane_header *lane = t->producer.lane;
    if (byte_sampler_passes(&t->bytes, lane, size_bytes)) {
        return false;
    }
    struct sampled_blocks *blocks = blocks_here();
    byte_sampler_draw(&t->bytes, lane);
    if (blocks == NULL) {
        arch_own_counter_add(&lane->unsampled_bytes, size_bytes);
        arch_own_counter_add(&lane->unsampled_allocations, 1);
        return false;
    }
    sampled_blocks_add(blocks, address);
    return true;
}

static void set_pass(const struct thread_pass *pass)
{
    struct thread_pass *own = thread_way_pass();
    if (own != NULL) {
        *own = *pass;
    }
}

// Let the thread's next events take the shortest way. `t` may have been left by an unload of code:
// then its generation is not the process's any more.
static void pass_hot(const struct thread_state *t)
{
    if (t->is_watched) {
        return;
    }
    const bool is_refused = atomic_load_explicit(&g_record_bytes.is_refused, memory_order_relaxed);
    const struct sampled_blocks *blocks = is_refused ? NULL : blocks_here();
    if (blocks != NULL) {
        set_pass(&(struct thread_pass){
            .filter = sampled_blocks_filter(blocks),
            .generation = t->generation,
            .budget_bytes = byte_sampler_budget(&t->bytes, t->producer.lane),
        });
    }
}

void record_bytes_stop_passing(void)
{
    set_pass(&(struct thread_pass){0});
}

static void note_free(struct thread_state *t, uint64_t address)
{
    t->last_freed = address;
    pass_hot(t);
}

static bool keeps_free(struct thread_state *t, uint64_t address)
{
    if (record_bytes_takes_out(address)) {
        return true;
    }
    note_free(t, address);
    return false;
}

bool record_bytes_keeps(struct thread_state *t, struct event *event, uint32_t recording)
{
    if (event->kind == EVENT_FREE) {
        return keeps_free(t, event->address);
    }
    // The program moves blocks of its own allocators without record_realloc_begins.
    const bool is_freed =
        event->kind == EVENT_REALLOC &&
        (event->freed.stamp != 0 || ((event->old_address & WIRE_CUSTOM_BLOCK) != 0 &&
                                     record_bytes_takes_out(event->old_address)));
    if (event->kind == EVENT_REALLOC && !is_freed) {
        t->last_freed = event->old_address;
    }
    const bool is_chosen =
        recording == SESSION_RECORD_BYTES && choose(t, event->address, event->size_bytes);
    if (is_chosen) {
        event->kind = is_freed ? EVENT_REALLOC : EVENT_ALLOC;
        return true;
    }
    if (is_freed) {
        // The old block is still the latest: its free, sent next, tells whether it was temporary.
        *event = (struct event){
            .kind = EVENT_FREE, .address = event->old_address, .stamp = event->freed.stamp};
        return true;
    }
    t->last_allocated = event->address;
    pass_hot(t);
    return false;
}

static bool send_free(struct thread_state *t, uint64_t address, uint64_t stamp)
{
    struct lane_producer *p = &t->producer;
    const uint64_t given = p->given_stamp;
    p->given_stamp = stamp != 0 ? stamp : given;
    if (t->last_allocated != address || t->last_freed != 0) { // the thread had events since
        lane_forget_latest(p);
    }
    const bool is_sent = lane_free(p, address);
    p->given_stamp = given;
    note_free(t, address);
    return is_sent;
}

static bool send_block(struct thread_state *t, const struct event *event, uint32_t slot)
{
    t->last_allocated = event->address;
    t->last_freed = 0; // until the thread's next free, which is not to pass unseen
    record_bytes_stop_passing();
    return lane_allocate_sampled(&t->producer, event->address, event->size_bytes, slot, 0);
}

void record_bytes_send(struct thread_state *t, const struct event *event, uint32_t slot)
{
    bool is_sent = true;
    if (event->kind == EVENT_FREE) {
        is_sent = send_free(t, event->address, event->stamp);
    } else if (event->kind == EVENT_REALLOC) {
        is_sent = send_free(t, event->old_address, event->freed.stamp);
    }
    if (is_sent && event->kind != EVENT_FREE && slot != STACK_SLOT_NONE) {
        is_sent = send_block(t, event, slot);
    } else if (event->kind != EVENT_FREE && slot == STACK_SLOT_NONE) {
        missed_events_count(EVENT_ALLOC);
    }
    if (!is_sent) {
        process_leave();
        missed_events_count(event->kind);
    }
}
