// SPDX-License-Identifier: MIT
#include "target/preload/record/record_sampled.h"

#include "target/preload/process/missed_events.h"
#include "target/preload/process/process.h"
#include "target/producer/entry/lane_entry.h"

atomic_bool g_record_passes;

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
    if (t->is_watched || !book_is_kept(&t->producer)) {
        return;
    }
    set_pass(&(struct thread_pass){
        .directory = t->producer.words->directory,
        .generation = t->generation,
        .budget_bytes = byte_sampler_budget(&t->choice.sampler, t->producer.lane),
    });
    atomic_store_explicit(&g_record_passes, true, memory_order_relaxed);
}

void record_sampled_stop_passing(void)
{
    set_pass(&(struct thread_pass){0});
}

// An event of the thread passes. In a handler, the interrupted hook has the lane.
static void let_pass(struct thread_state *t, bool is_nested)
{
    if (!is_nested) {
        lane_forget_latest(&t->producer);
    }
    pass_hot(t);
}

// Count a new block; true: it is chosen.
static bool choose(struct thread_state *t, struct event *event)
{
    struct lane_producer *p = &t->producer;
    if (!book_is_kept(p)) {
        byte_sampler_count(p->lane, event->size_bytes);
        return false;
    }
    return block_choice_takes(&t->choice, p, event->size_bytes, &event->level);
}

// Take the word of a block that is about to be freed, unless it was taken before. Return whether
// there is a free to count.
static bool take_word(struct thread_state *t, uint64_t address, struct freed_note *freed)
{
    if (!freed->is_taken && book_is_kept(&t->producer)) {
        *freed =
            (struct freed_note){.is_taken = true, .taken = book_take(t->producer.words, address)};
    }
    // Of a block of a handler, who allocated it counts both.
    return freed->taken.row != 0 && freed->taken.row != BOOK_ROW_LATER;
}

static bool keeps_free(struct thread_state *t, struct event *event, bool is_nested)
{
    if (take_word(t, event->address, &event->freed)) {
        return true;
    }
    t->last_freed = event->address;
    let_pass(t, is_nested);
    return false;
}

static bool
keeps_block(struct thread_state *t, struct event *event, uint32_t recording, bool is_nested)
{
    const bool is_move = event->kind == EVENT_REALLOC;
    const bool is_freed = is_move && take_word(t, event->old_address, &event->freed);
    if (is_move && !is_freed) {
        t->last_freed = event->old_address;
    }
    if (recording == SESSION_RECORD_SAMPLE && choose(t, event)) {
        if (is_nested) {
            book_put_later(t->producer.words, event->address, event->size_bytes);
        }
        event->kind = is_freed ? EVENT_REALLOC : EVENT_ALLOC;
        return true;
    }
    if (is_freed) {
        // The old block is still the latest: its free, sent next, tells whether it was temporary.
        *event = (struct event){
            .kind = EVENT_FREE, .address = event->old_address, .freed = event->freed};
        return true;
    }
    t->last_allocated = event->address;
    let_pass(t, is_nested);
    return false;
}

bool record_sampled_keeps(struct thread_state *t,
                          struct event *event,
                          uint32_t recording,
                          bool is_nested)
{
    if (!is_nested) {
        if (!lane_enter(&t->producer)) {
            process_leave();
            missed_events_count(event->kind);
            return false;
        }
        if (t->producer.level != 0) {
            lane_producer_relax(&t->producer);
        }
    }
    return event->kind == EVENT_FREE ? keeps_free(t, event, is_nested)
                                     : keeps_block(t, event, recording, is_nested);
}

static bool send_free(struct thread_state *t, uint64_t address, const struct freed_note *freed)
{
    struct lane_producer *p = &t->producer;
    if (t->last_allocated != address || t->last_freed != 0) { // the thread had events since
        lane_forget_latest(p);
    }
    const uint64_t from = p->pos;
    const bool is_sent = lane_free_taken(p, &freed->taken);
    lane_producer_note_free(p, from);
    t->last_freed = address;
    pass_hot(t);
    return is_sent;
}

static bool send_block(struct thread_state *t, const struct event *event, uint32_t slot)
{
    t->last_allocated = event->address;
    t->last_freed = 0; // until the thread's next free, which is not to pass unseen
    record_sampled_stop_passing();
    record_sampled_prepare(t, event);
    return lane_allocate_chosen(&t->producer, event->address, event->size_bytes, slot);
}

void record_sampled_send(struct thread_state *t, const struct event *event, uint32_t slot)
{
    bool is_sent = true;
    if (event->kind == EVENT_FREE) {
        is_sent = send_free(t, event->address, &event->freed);
    } else if (event->kind == EVENT_REALLOC) {
        is_sent = send_free(t, event->old_address, &event->freed);
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
