// SPDX-License-Identifier: MIT
#include "target/preload/record/record_mapping.h"

#include <linux/mman.h>

#include "session/wire.h"
#include "target/preload/record/record.h"
#include "target/preload/record/record_guard.h"
#include "target/producer/entry/lane_entry.h"

static uint32_t kind_of(uint64_t flags)
{
    if ((flags & MAP_ANONYMOUS) == 0) {
        return WIRE_MAPPING_FILE;
    }
    return (flags & MAP_TYPE) == MAP_PRIVATE ? WIRE_MAPPING_ANONYMOUS : WIRE_MAPPING_SHARED;
}

struct mapping_change mapping_of_mmap(uint64_t mapped, uint64_t size_bytes, uint64_t flags)
{
    return (struct mapping_change){
        .address = mapped, .size_bytes = size_bytes, .kind = kind_of(flags)};
}

struct mapping_change mapping_of_munmap(uint64_t address, uint64_t size_bytes, uint64_t number)
{
    return (struct mapping_change){
        .old_address = address, .old_size_bytes = size_bytes, .old_number = number};
}

// A moved mapping belongs to the caller that moved it, as with realloc. Where the old mapping stays
// (a size of 0 duplicates a shared one; MREMAP_DONTUNMAP), nothing is unmapped.
struct mapping_change mapping_of_mremap(uint64_t mapped,
                                        uint64_t size_bytes,
                                        uint64_t flags,
                                        uint64_t old,
                                        uint64_t old_size_bytes,
                                        uint64_t number)
{
    return (struct mapping_change){
        .address = mapped,
        .size_bytes = size_bytes,
        .kind = WIRE_MAPPING_SAME,
        .old_address = old,
        .old_size_bytes = (flags & MREMAP_DONTUNMAP) != 0 ? 0 : old_size_bytes,
        .old_number = number,
    };
}

struct mapping_change mapping_of_break(uint64_t before, uint64_t after, uint64_t number)
{
    return after > before ? (struct mapping_change){.address = before,
                                                    .size_bytes = after - before,
                                                    .kind = WIRE_MAPPING_BREAK}
                          : mapping_of_munmap(after, before - after, number);
}

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
    if (change->size_bytes == 0 && change->old_size_bytes == 0) {
        return;
    }
    struct thread_state *t = guard_enter((uint64_t)__builtin_frame_address(0));
    struct mapping_change numbered = *change;
    numbered.number = process_next_mapping();
    if (UNLIKELY(t == NULL)) {
        if (guard_is_nested()) {
            defer(caller, &numbered);
        }
        return;
    }
    // The caller of an unmapping does not matter, and of an allocator only which one it is.
    const uint32_t slot = numbered.size_bytes == 0             ? 0
                          : numbered.kind == WIRE_MAPPING_HEAP ? record_slot_of_frame(t, caller->pc)
                                                               : record_slot_of_caller(t, caller);
    if (slot != STACK_SLOT_NONE) {
        record_mapping_send(t, &numbered, slot);
    }
    guard_leave(t);
}
