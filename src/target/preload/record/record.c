// SPDX-License-Identifier: MIT
#include "target/preload/record/record.h"

#include "base/hash.h"
#include "pointer_address_arch.h"
#include "target/preload/process/missed_events.h"
#include "target/preload/python/python_stack.h"
#include "target/preload/record/record_hot.h"
#include "target/preload/record/record_mapping.h"
#include "target/preload/record/record_sampled.h"
#include "target/producer/entry/lane_entry.h"

// Return the slot of a stack that was just walked; send its definition first if needed.
// STACK_SLOT_NONE: recording has ended.
static uint32_t slot_of(struct thread_state *t, const struct stack_view *stack)
{
    uint32_t slot = stack_dictionary_find(&t->stacks, stack->name);
    if (LIKELY(slot != STACK_SLOT_NONE)) {
        return slot;
    }
    if (!still_ours(t)) {
        return STACK_SLOT_NONE;
    }
    if (stack_dictionary_define(&t->stacks, &t->producer, stack, &slot) != ERR_OK) {
        process_leave();
        return STACK_SLOT_NONE;
    }
    return slot;
}

static NOINLINE void
check_walk(struct thread_state *t, const struct unwind_regs *caller, const struct unwind_walk *walk)
{
    if ((walk->flags & UNWIND_NOT_REMEMBERED) == 0) { // else it was a full walk itself
        session_count(t->producer.session, NOTE_unwind_checks, 1);
    }
    if (unwind_thread_check(t->unwind, caller, walk) != UNWIND_SAME) {
        session_count(t->producer.session, NOTE_unwind_differences, 1);
    }
}

// Walk, and return the slot of the stack as slot_of() does. `again` is the name from
// unwind_thread_again, to be checked too; 0 if it returned none.
static NOINLINE uint32_t walk_to_slot(struct thread_state *t,
                                      const struct unwind_regs *caller,
                                      uint64_t again)
{
    struct unwind_walk walk;
    if (UNLIKELY((t->extras & SESSION_PYTHON) != 0)) {
        const uint64_t name = python_stack_again(&t->python, t->unwind, caller);
        const uint32_t slot = stack_dictionary_find(&t->stacks, name);
        if (slot != STACK_SLOT_NONE && (t->extras & SESSION_CHECK_UNWIND) == 0) {
            return slot;
        }
    }
    unwind_thread_walk(t->unwind, caller, &walk);
    if (UNLIKELY((t->extras & SESSION_CHECK_UNWIND) != 0)) {
        check_walk(t, caller, &walk);
        if (again != 0 && again != walk.name) {
            session_count(t->producer.session, NOTE_unwind_differences, 1);
        }
    }
    if (UNLIKELY((t->extras & SESSION_PYTHON) != 0)) {
        python_stack_mix(t->python, t->unwind, &walk);
    }
    return slot_of(
        t, &(struct stack_view){
               .frames = walk.frames, .count = walk.count, .flags = walk.flags, .name = walk.name});
}

// Return the slot of the stack that begins with `caller`. Its name is `again` unless that is 0.
ALWAYS_INLINE uint32_t find_slot_named(struct thread_state *t,
                                       const struct unwind_regs *caller,
                                       uint64_t again)
{
    const uint32_t slot = stack_dictionary_find(&t->stacks, again);
    if (UNLIKELY(slot == STACK_SLOT_NONE || t->extras != 0)) {
        return walk_to_slot(t, caller, again);
    }
    return slot;
}

// Return the slot of the stack that begins with `caller`. Usually it is the slot of the last event.
ALWAYS_INLINE uint32_t find_slot(struct thread_state *t, const struct unwind_regs *caller)
{
    return find_slot_named(t, caller, unwind_again(t->unwind, caller));
}

uint32_t record_slot_of_caller(struct thread_state *t, const struct unwind_regs *caller)
{
    const uint32_t slot = find_slot(t, caller);
    return slot != STACK_SLOT_NONE && still_ours(t) ? slot : STACK_SLOT_NONE;
}

uint32_t record_slot_of_frame(struct thread_state *t, uint64_t pc)
{
    const struct unwind_frame frame = {.pc = pc, .name = stack_name(0, pc)};
    return slot_of(t, &(struct stack_view){.frames = &frame, .count = 1, .name = frame.name});
}

// Count an event that is lost because the recording has ended.
static NOINLINE void lose(enum event_kind kind)
{
    process_leave();
    missed_events_count(kind);
}

// Record a block that has a stack. The guard is held. These take words: an event in memory would be
// zeroed first, which costs as much as all the rest.
ALWAYS_INLINE void
take_down_block(struct thread_state *t, uint64_t address, uint64_t size_bytes, uint32_t slot)
{
    if (UNLIKELY(slot == STACK_SLOT_NONE || !still_ours(t))) {
        missed_events_count(EVENT_ALLOC);
    } else if (UNLIKELY(!lane_allocate(&t->producer, address, size_bytes, slot))) {
        lose(EVENT_ALLOC);
    } else {
        t->last_allocated = address;
    }
}

ALWAYS_INLINE void take_down_reallocation(struct thread_state *t,
                                          uint64_t old_address,
                                          uint64_t address,
                                          uint64_t size_bytes,
                                          uint32_t slot,
                                          const struct freed_note *freed)
{
    if (UNLIKELY(slot == STACK_SLOT_NONE || !still_ours(t))) {
        missed_events_count(EVENT_REALLOC);
    } else if (UNLIKELY(
                   !lane_reallocate(&t->producer, old_address, address, size_bytes, slot, freed))) {
        lose(EVENT_REALLOC);
    } else {
        t->last_allocated = address;
    }
}

void record_block(struct thread_state *t, const struct event *event, uint32_t slot)
{
    if (event->kind == EVENT_REALLOC) {
        take_down_reallocation(t, event->old_address, event->address, event->size_bytes, slot,
                               &event->freed);
    } else {
        take_down_block(t, event->address, event->size_bytes, slot);
    }
}

// Note an event that is deferred. The recorder does not rest before it is sent.
static void note_deferred(const struct thread_state *t)
{
    _Atomic uint64_t *unsent = &t->producer.lane->unsent_of_handlers;
    // Relaxed: our own. Each event changes the word, so that record_no_deferred notices it.
    const uint64_t before = atomic_load_explicit(unsent, memory_order_relaxed);
    atomic_store_explicit(unsent, before + 1 != 0 ? before + 1 : 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

struct freed_note record_realloc_begins(const void *block)
{
    const bool is_open = process_session() != NULL && process_words_are_open(&g_process->words);
    return is_open
               ? (struct freed_note){.is_taken = true,
                                     .taken = book_take(&g_process->words, arch_address_of(block))}
               : (struct freed_note){0};
}

void record_realloc_fails(struct freed_note freed)
{
    if (freed.taken.row != 0) {
        book_put_back(&g_process->words, &freed.taken);
    }
}

ALWAYS_INLINE void take_down_free(struct thread_state *t, uint64_t address)
{
    if (UNLIKELY(!lane_free(&t->producer, address))) {
        lose(EVENT_FREE);
        return;
    }
    t->last_freed = address;
}

// Record the free of a block whose word may have been taken before.
static void
take_down_free_of(struct thread_state *t, uint64_t address, const struct freed_note *freed)
{
    if (!freed->is_taken) {
        take_down_free(t, address);
    } else if (UNLIKELY(!lane_free_taken(&t->producer, &freed->taken))) {
        lose(EVENT_FREE);
    } else {
        t->last_freed = address;
    }
}

// Pass a block that is not recorded, while recording is stopped. For a realloc, the new block is
// not recorded, and the free of the old one is, if that was recorded.
static void pass_block(struct thread_state *t, const struct event *event)
{
    if (event->kind == EVENT_REALLOC && what_to_record(t) == SESSION_RECORD_FREES) {
        take_down_free_of(t, event->old_address, &event->freed);
    }
    lane_pass(&t->producer, event->address, event->size_bytes);
    t->last_allocated = event->address;
}

// Record a block while not everything is recorded, and release the guard. `old_address` is 0 unless
// the block was reallocated. Takes words, so that the callers' fast path needs no struct in memory.
static NOINLINE void take_down_otherwise(struct thread_state *t,
                                         const struct unwind_regs *caller,
                                         uint64_t address,
                                         uint64_t old_address,
                                         uint64_t size_bytes,
                                         struct freed_note freed)
{
    struct event event = {.kind = old_address != 0 ? EVENT_REALLOC : EVENT_ALLOC,
                          .address = address,
                          .old_address = old_address,
                          .size_bytes = size_bytes,
                          .freed = freed};
    const uint32_t recording = what_to_record(t);
    if (recording < SESSION_RECORD_SAMPLE) {
        pass_block(t, &event);
    } else if (record_sampled_keeps(t, &event, recording, false)) {
        const bool is_free = event.kind == EVENT_FREE;
        record_sampled_prepare(t, &event);
        record_sampled_send(t, &event,
                            is_free ? STACK_SLOT_NONE : record_slot_of_caller(t, caller));
    }
    guard_leave(t);
}

static NOINLINE void take_down_free_otherwise(struct thread_state *t, uint64_t address)
{
    const uint32_t recording = what_to_record(t);
    struct event event = {.kind = EVENT_FREE, .address = address};
    if (recording >= SESSION_RECORD_SAMPLE && record_sampled_keeps(t, &event, recording, false)) {
        record_sampled_send(t, &event, STACK_SLOT_NONE);
    }
}

// Reduce an event to the part to record while recording is stopped; false: nothing.
static bool keep_of_stopped(struct event *event, uint32_t recording)
{
    if (recording == SESSION_RECORD_NOTHING || event->kind == EVENT_ALLOC) {
        return false;
    }
    if (event->kind == EVENT_REALLOC) {
        *event = (struct event){
            .kind = EVENT_FREE, .address = event->old_address, .freed = event->freed};
    }
    return true;
}

static struct freed_note take(struct process_words *words, uint64_t address)
{
    return (struct freed_note){.is_taken = true, .taken = book_take(words, address)};
}

// Let words say at once what happens in a handler: another thread may free the block before the
// event is counted. False: there is nothing to count.
static bool note_in_words(struct thread_state *t, struct event *event, uint32_t recording)
{
    struct process_words *words = t->producer.words;
    event->is_later = true;
    note_deferred(t);
    if (event->kind == EVENT_FREE) {
        event->freed = take(words, event->address);
        return event->freed.taken.row != BOOK_ROW_LATER; // who allocated it counts both
    }
    if (event->kind == EVENT_REALLOC && !event->freed.is_taken) { // it may be at the same address
        event->freed = take(words, event->old_address);
    }
    if (event->kind != EVENT_FREE && recording == SESSION_RECORD_ALL) {
        book_put_later(words, event->address, event->size_bytes);
    }
    return true;
}

// Handle an event that found the guard held, or recording over.
static NOINLINE void without_guard(enum event_kind kind,
                                   uint64_t address,
                                   uint64_t old_address,
                                   uint64_t size_bytes,
                                   struct freed_note freed,
                                   const struct unwind_regs *caller)
{
    if (guard_is_nested()) {
        struct event event = {.kind = kind,
                              .address = address,
                              .old_address = old_address,
                              .size_bytes = size_bytes,
                              .freed = freed};
        struct thread_state *t = thread_way_state();
        const uint32_t recording = what_to_record(t);
        if (recording >= SESSION_RECORD_SAMPLE) {
            if (!record_sampled_keeps(t, &event, recording, true)) {
                return;
            }
            event.is_later = true;
            note_deferred(t);
        } else if (book_is_kept(&t->producer) && !note_in_words(t, &event, recording)) {
            return;
        }
        if (recording < SESSION_RECORD_SAMPLE && recording != SESSION_RECORD_ALL &&
            !keep_of_stopped(&event, recording)) {
            return;
        }
        deferred_put(&t->deferred, &event, caller, t->max_frames);
        return;
    }
    missed_events_count(kind);
}

// Record a block whose stack is found, and release the guard.
ALWAYS_INLINE void
finish_alloc(struct thread_state *t, const void *block, size_t size_bytes, uint32_t slot)
{
    take_down_block(t, arch_address_of(block), size_bytes, slot);
    guard_leave(t);
}

void record_alloc(const struct unwind_regs *caller, const void *block, size_t size_bytes)
{
    struct thread_state *t = guard_enter(OUR_FRAME);
    if (UNLIKELY(t == NULL)) {
        without_guard(EVENT_ALLOC, arch_address_of(block), 0, size_bytes, (struct freed_note){0},
                      caller);
        return;
    }
    if (UNLIKELY(what_to_record(t) != SESSION_RECORD_ALL)) {
        take_down_otherwise(t, caller, arch_address_of(block), 0, size_bytes,
                            (struct freed_note){0});
        return;
    }
    finish_alloc(t, block, size_bytes, find_slot(t, caller));
}

void *record_alloc_slowly(uint64_t pc, uint64_t sp, uint64_t fp, void *block, size_t size_bytes)
{
    const struct unwind_regs caller = {.pc = pc, .sp = sp, .fp = fp};
    record_alloc(&caller, block, size_bytes);
    return block;
}

void *record_alloc_in_slot(struct thread_state *t, void *block, size_t size_bytes, uint32_t slot)
{
    finish_alloc(t, block, size_bytes, slot);
    return block;
}

// The stack differs from the last one.
void *record_alloc_walking(
    struct thread_state *t, uint64_t pc, uint64_t sp, uint64_t fp, void *block, size_t size_bytes)
{
    const struct unwind_regs caller = {.pc = pc, .sp = sp, .fp = fp};
    const uint64_t name = LIKELY(t->extras == 0) ? unwind_again_by_steps(t->unwind, &caller)
                                                 : unwind_again(t->unwind, &caller);
    finish_alloc(t, block, size_bytes, find_slot_named(t, &caller, name));
    return block;
}

void *record_drain(struct thread_state *t, void *block)
{
    guard_drain(t);
    return block;
}

void record_free_guarded(struct thread_state *t, const void *block)
{
    take_down_free(t, arch_address_of(block));
    guard_leave(t);
}

void record_realloc(const struct unwind_regs *caller,
                    const void *old_block,
                    const void *block,
                    size_t size_bytes,
                    struct freed_note freed)
{
    struct thread_state *t = guard_enter(OUR_FRAME);
    if (UNLIKELY(t == NULL)) {
        without_guard(EVENT_REALLOC, arch_address_of(block), arch_address_of(old_block), size_bytes,
                      freed, caller);
        return;
    }
    if (UNLIKELY(what_to_record(t) != SESSION_RECORD_ALL)) {
        take_down_otherwise(t, caller, arch_address_of(block), arch_address_of(old_block),
                            size_bytes, freed);
        return;
    }
    take_down_reallocation(t, arch_address_of(old_block), arch_address_of(block), size_bytes,
                           find_slot(t, caller), &freed);
    guard_leave(t);
}

void record_free(const void *block)
{
    struct thread_state *t = guard_enter(OUR_FRAME);
    if (UNLIKELY(t == NULL)) {
        without_guard(EVENT_FREE, arch_address_of(block), 0, 0, (struct freed_note){0}, NULL);
        return;
    }
    if (LIKELY(what_to_record(t) <= SESSION_RECORD_FREES)) {
        take_down_free(t, arch_address_of(block));
    } else {
        take_down_free_otherwise(t, arch_address_of(block));
    }
    guard_leave(t);
}

// Send a deferred event that is not a free.
static void send_deferred(struct thread_state *t, const struct deferred_event *deferred)
{
    if (deferred->event.kind == EVENT_MAPPING && deferred->mapping.size_bytes == 0) {
        record_mapping_send(t, &deferred->mapping, 0);
        return;
    }
    const bool is_block = deferred->event.kind != EVENT_MAPPING;
    const bool is_chosen = is_block && what_to_record(t) >= SESSION_RECORD_SAMPLE;
    if (is_chosen) {
        record_sampled_prepare(t, &deferred->event);
    }
    const uint32_t slot = slot_of(t, &(struct stack_view){.frames = deferred->frames,
                                                          .count = deferred->count,
                                                          .flags = deferred->flags,
                                                          .name = deferred->name});
    if (is_chosen) {
        record_sampled_send(t, &deferred->event, slot);
    } else if (is_block) {
        record_block(t, &deferred->event, slot);
    } else if (slot != STACK_SLOT_NONE) {
        record_mapping_send(t, &deferred->mapping, slot);
    }
}

void record_deferred(void *context, const struct deferred_event *deferred)
{
    struct thread_state *t = context;
    if (UNLIKELY(!still_ours(t))) {
        return;
    }
    t->producer.is_given_later = deferred->event.is_later;
    if (deferred->event.kind != EVENT_FREE) {
        send_deferred(t, deferred);
    } else if (what_to_record(t) >= SESSION_RECORD_SAMPLE) {
        record_sampled_send(t, &deferred->event, STACK_SLOT_NONE);
    } else {
        take_down_free_of(t, deferred->event.address, &deferred->event.freed);
    }
    t->producer.is_given_later = false;
}

uint64_t record_expected_deferred(const struct thread_state *t)
{
    return atomic_load_explicit(&t->producer.lane->unsent_of_handlers,
                                memory_order_relaxed); // our own
}

bool record_no_deferred(const struct thread_state *t, uint64_t expected)
{
    // Release: pairs with the recorder's acquire; the events have been published.
    return atomic_compare_exchange_strong_explicit(&t->producer.lane->unsent_of_handlers, &expected,
                                                   0, memory_order_release, memory_order_relaxed);
}

// Return the thread's state, whose last events are asked for.
static struct thread_state *state_asked(void)
{
    struct thread_state *t = process_session() != NULL ? thread_way_state() : NULL;
    if (t != NULL) {
        t->is_watched = false;
    }
    return t;
}

uint64_t record_last_allocated(void)
{
    const struct thread_state *t = state_asked();
    return t != NULL ? t->last_allocated : 0;
}

uint64_t record_last_freed(void)
{
    const struct thread_state *t = state_asked();
    return t != NULL ? t->last_freed : 0;
}

void record_forget_last(void)
{
    struct thread_state *t = process_session() != NULL ? thread_way_state() : NULL;
    if (t != NULL) {
        t->last_allocated = 0;
        t->last_freed = 0;
        t->is_watched = true;
        record_sampled_stop_passing();
    }
}
