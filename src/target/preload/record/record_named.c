// SPDX-License-Identifier: MIT
#include "target/preload/record/record_named.h"

#include "base/hash.h"
#include "pointer_address_arch.h"
#include "session/wire.h"
#include "target/preload/record/record.h"
#include "target/preload/record/record_guard.h"
#include "target/preload/record/record_sampled.h"
#include "target/producer/entry/lane_entry.h"

enum {
    TRIES = 2, // the first may find that everything has to be sent anew
};

// Return the state with the guard held, if any new event is recorded, at least partly; else NULL.
ALWAYS_INLINE struct thread_state *enter_recording(uint64_t frame)
{
    struct thread_state *t = guard_enter(frame);
    if (t == NULL) {
        return NULL;
    }
    const uint32_t recording = what_to_record(t);
    if (recording != SESSION_RECORD_ALL && recording != SESSION_RECORD_SAMPLE) {
        guard_leave(t);
        return NULL;
    }
    return t;
}

// Return the slot of the caller's stack with one more frame, or STACK_SLOT_NONE.
static uint32_t
slot_of_named(struct thread_state *t, const struct unwind_regs *caller, uint64_t name_pc)
{
    uint32_t slot = STACK_SLOT_NONE;
    enum err result = ERR_LIMIT;
    for (int i = 0; i < TRIES && result == ERR_LIMIT; i++) {
        slot = record_slot_of_caller(t, caller);
        if (slot == STACK_SLOT_NONE) {
            return slot;
        }
        const uint64_t base = t->stacks.stacks.names[slot];
        const uint32_t known = stack_dictionary_find(&t->stacks, stack_name(base, name_pc));
        if (known != STACK_SLOT_NONE) {
            return known;
        }
        result = stack_dictionary_define_leaf(&t->stacks, &t->producer, base, name_pc, &slot);
    }
    if (result == ERR_DEAD) {
        process_leave();
        return STACK_SLOT_NONE;
    }
    return slot;
}

// Record a block, and release the guard.
static void take_down(struct thread_state *t,
                      const struct unwind_regs *caller,
                      uint64_t name_pc,
                      const struct event *event)
{
    const uint32_t recording = what_to_record(t);
    if (recording >= SESSION_RECORD_SAMPLE) {
        struct event kept = *event;
        if (record_sampled_keeps(t, &kept, recording, false)) {
            const bool is_free = kept.kind == EVENT_FREE;
            record_sampled_prepare(t, &kept);
            const uint32_t slot = is_free ? STACK_SLOT_NONE : slot_of_named(t, caller, name_pc);
            record_sampled_send(t, &kept, slot);
        }
    } else {
        record_block(t, event, slot_of_named(t, caller, name_pc));
    }
    guard_leave(t);
}

void record_named_alloc(const struct unwind_regs *caller,
                        uint64_t name_pc,
                        const void *block,
                        size_t size_bytes)
{
    struct thread_state *t = enter_recording(OUR_FRAME);
    if (t == NULL) {
        record_alloc(caller, block, size_bytes);
        return;
    }
    take_down(t, caller, name_pc,
              &(struct event){.kind = EVENT_ALLOC,
                              .address = arch_address_of(block),
                              .size_bytes = size_bytes});
}

void record_named_realloc(const struct unwind_regs *caller,
                          uint64_t name_pc,
                          const void *old_block,
                          const void *block,
                          size_t size_bytes)
{
    struct thread_state *t = enter_recording(OUR_FRAME);
    if (t == NULL) {
        record_realloc(caller, old_block, block, size_bytes, (struct freed_note){0});
        return;
    }
    take_down(t, caller, name_pc,
              &(struct event){.kind = EVENT_REALLOC,
                              .address = arch_address_of(block),
                              .old_address = arch_address_of(old_block),
                              .size_bytes = size_bytes});
}

void record_named_event(const struct unwind_regs *caller, uint64_t name_pc, uint64_t weight)
{
    struct thread_state *t = enter_recording(OUR_FRAME);
    if (t == NULL) {
        return;
    }
    const uint32_t slot = slot_of_named(t, caller, name_pc);
    const uint64_t words[] = {wire_word(WIRE_EVENT, slot), weight};
    if (slot != STACK_SLOT_NONE && !lane_send(&t->producer, words, ARRAY_LEN(words))) {
        process_leave();
    }
    guard_leave(t);
}
