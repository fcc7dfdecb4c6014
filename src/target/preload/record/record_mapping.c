// SPDX-License-Identifier: MIT
#include "target/preload/record/record_mapping.h"

#include "session/wire.h"
#include "target/preload/record/record.h"
#include "target/preload/record/record_guard.h"
#include "target/producer/nursery/lane_entry.h"

void record_mapping_send(struct thread_state *t, const struct mapping_change *change, uint32_t slot)
{
    const uint64_t words[] = {
        wire_word(WIRE_MAPPING, change->address),
        wire_slot_size(slot, change->kind),
        change->size_bytes,
        change->number,
        change->old_address,
        change->old_size_bytes,
        change->old_number,
    };
    if (UNLIKELY(!lane_send(&t->producer, words, ARRAY_LEN(words)))) {
        process_leave();
    }
}

// Defer a change by a signal handler that has interrupted another hook.
static NOINLINE void defer(const struct unwind_regs *caller, const struct mapping_change *change)
{
    struct thread_state *t = thread_way_state();
    const struct mapping_event event = {.event = {.kind = EVENT_MAPPING}, .change = *change};
    deferred_put(&t->deferred, &event.event, caller, t->max_frames);
}

void record_mapping(const struct unwind_regs *caller, const struct mapping_change *change)
{
    struct thread_state *t = guard_enter((uint64_t)__builtin_frame_address(0));
    struct mapping_change numbered = *change;
    numbered.number = process_next_mapping();
    if (UNLIKELY(t == NULL)) {
        if (guard_is_nested()) {
            defer(caller, &numbered);
        }
        return;
    }
    // The caller of an unmapping does not matter: the empty stack.
    const uint32_t slot = numbered.size_bytes != 0 ? record_slot_of_caller(t, caller) : 0;
    if (slot != STACK_SLOT_NONE) {
        record_mapping_send(t, &numbered, slot);
    }
    guard_leave(t);
}
