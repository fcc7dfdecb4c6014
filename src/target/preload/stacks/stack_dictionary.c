// SPDX-License-Identifier: MIT
#include "target/preload/stacks/stack_dictionary.h"

#include <stdbool.h>

#include "base/hash.h"
#include "session/wire.h"
#include "target/producer/entry/lane_entry.h"
#include "target/unwind/unwind.h"

static struct name_table name_table_over(uint64_t *first, uint64_t *grown, uint32_t max)
{
    return (struct name_table){
        .names = first, .grown = grown, .mask = STACK_DICTIONARY_MIN - 1, .max = max};
}

static void name_table_clear(struct name_table *t)
{
    for (uint32_t i = 0; i <= t->mask; i++) {
        t->names[i] = 0;
    }
    t->evictions = 0;
}

static bool name_table_has(const struct name_table *t, uint64_t name)
{
    return t->names[(uint32_t)name & t->mask] == name;
}

// Double a table whose evictions have reached a quarter of its places. Entries stay at their index:
// an entry that belongs elsewhere now is missed once.
static void name_table_adapt(struct name_table *t)
{
    if (t->evictions <= t->mask / 4 || t->mask + 1 >= t->max) {
        return;
    }
    if (t->names != t->grown) {
        __builtin_memcpy(t->grown, t->names, (t->mask + 1) * sizeof(t->names[0]));
        t->names = t->grown;
    }
    t->mask = t->mask * 2 + 1;
    t->evictions = 0;
}

static void name_table_put(struct name_table *t, uint64_t name)
{
    uint64_t *place = &t->names[(uint32_t)name & t->mask];
    t->evictions += *place != 0 && *place != name;
    *place = name;
}

void stack_dictionary_init(struct stack_dictionary *d, const struct stack_dictionary_memory *memory)
{
    const uint32_t max = memory->names_max;
    *d = (struct stack_dictionary){
        .stacks = name_table_over(memory->first_names, memory->grown_names, max),
        .nodes = name_table_over(memory->first_names + STACK_DICTIONARY_MIN,
                                 memory->grown_names + max, max),
        .modules = {.entries = memory->first_modules, .grown = memory->grown_modules},
    };
}

void stack_dictionary_reset(struct stack_dictionary *d)
{
    name_table_clear(&d->stacks);
    name_table_clear(&d->nodes);
    module_dictionary_reset(&d->modules);
}

// Return the number of outermost frames whose nodes the recorder knows.
static uint32_t known_frames(const struct stack_dictionary *d, const struct stack_view *stack)
{
    uint32_t count = stack->count;
    while (count > 0 && !name_table_has(&d->nodes, stack->frames[count - 1].name)) {
        count--;
    }
    return count;
}

// Introduce the modules of all frames from `first` on. A reset on the way makes every frame unknown
// again, so *first becomes 0. A single stack through more modules than there are slots keeps the
// rest as plain addresses.
static enum err introduce_modules(struct stack_dictionary *d,
                                  struct lane_producer *p,
                                  const struct stack_view *stack,
                                  uint32_t *first)
{
    bool was_reset = false;
    const bool is_guess = (stack->flags & UNWIND_USED_FRAME_POINTER) != 0;
    for (uint32_t i = *first; i < stack->count; i++) {
        enum err result =
            module_dictionary_introduce(&d->modules, p, stack->frames[i].pc, is_guess);
        if (result == ERR_DEAD) {
            return ERR_DEAD;
        }
        if (result == ERR_LIMIT && !was_reset) {
            stack_dictionary_reset(d);
            was_reset = true;
            *first = 0;
            i = UINT32_MAX; // begins again at 0
        }
    }
    return ERR_OK;
}

static uint32_t wire_flags(const struct stack_view *stack)
{
    return (stack->flags & UNWIND_UNFINISHED) != 0 ? WIRE_STACK_UNFINISHED : 0;
}

// Choose a slot for a stack that has none: a free one of its two, else another stack's.
static uint32_t choose_slot(const struct stack_dictionary *d, uint64_t name)
{
    const uint32_t first = stack_dictionary_first(d, name);
    const uint32_t second = stack_dictionary_second(d, name);
    const bool is_second_wanted = d->stacks.names[second] == 0 || d->stacks.evictions % 2 != 0;
    return d->stacks.names[first] != 0 && is_second_wanted ? second : first;
}

// Send frames [first, end) as one record; the last one of a stack names its slot.
static enum err send_part(struct stack_dictionary *d,
                          struct lane_producer *p,
                          const struct stack_view *stack,
                          uint32_t slot_when_whole,
                          uint32_t first,
                          uint32_t end)
{
    const bool is_last = end == stack->count;
    const uint32_t slot = is_last ? slot_when_whole : 0;
    const uint32_t flags = is_last ? WIRE_STACK_HAS_SLOT | wire_flags(stack) : 0;
    const uint64_t base = first == 0 ? 0 : stack->frames[first - 1].name;
    uint64_t *packed = lane_producer_begin_stack(p, slot, flags, base, end - first);
    if (packed == NULL) {
        return ERR_DEAD;
    }
    for (uint32_t i = first; i < end; i++) {
        packed[i - first] = module_dictionary_frame(&d->modules, stack->frames[i].pc);
    }
    lane_producer_advance(p, lane_stack_words(end - first));
    for (uint32_t i = first; i < end; i++) {
        name_table_put(&d->nodes, stack->frames[i].name);
    }
    return ERR_OK;
}

// Count notes. These counters concern distinct stacks, not events: one definition, one count.
static void count_notes(struct session_header *session, uint32_t flags)
{
    if ((flags & UNWIND_USED_FRAME_POINTER) != 0) {
        session_count(session, NOTE_frame_pointer_walks, 1);
    }
    if ((flags & UNWIND_UNFINISHED) != 0) {
        session_count(session, NOTE_unfinished_stacks, 1);
    }
    if ((flags & UNWIND_CUT) != 0) {
        session_count(session, NOTE_cut_stacks, 1);
    }
}

// Forget everything if the recorder has forgotten stacks. Return whether it has.
static bool follow_losses(struct stack_dictionary *d, const struct lane_producer *p)
{
    // Relaxed: definitions that the recorder reads before this change count as merged stacks.
    const uint32_t losses = atomic_load_explicit(&p->session->stack_losses, memory_order_relaxed);
    if (LIKELY(losses == d->seen_losses)) {
        return false;
    }
    stack_dictionary_reset(d);
    d->seen_losses = losses;
    return true;
}

enum err stack_dictionary_define(struct stack_dictionary *d,
                                 struct lane_producer *p,
                                 const struct stack_view *stack,
                                 uint32_t *slot)
{
    if (!lane_enter(p)) {
        return ERR_DEAD;
    }
    (void)follow_losses(d, p); // either way the stack is defined with what it needs
    uint32_t first = known_frames(d, stack);
    if (first < stack->count) {
        count_notes(p->session, stack->flags);
    }
    TRY(introduce_modules(d, p, stack, &first));
    name_table_adapt(&d->stacks);
    name_table_adapt(&d->nodes);
    const uint32_t chosen = choose_slot(d, stack->name);
    do {
        const uint32_t left = stack->count - first;
        const uint32_t count = left < WIRE_STACK_FRAMES_MAX ? left : WIRE_STACK_FRAMES_MAX;
        TRY(send_part(d, p, stack, chosen, first, first + count));
        first += count;
    } while (first < stack->count);
    if (book_is_kept(p) && !book_leave_row(p, chosen)) {
        return ERR_DEAD;
    }
    lane_producer_publish(p); // the thread may count blocks of it for long, and be killed
    d->stacks.evictions += d->stacks.names[chosen] != 0;
    d->stacks.names[chosen] = stack->name;
    *slot = chosen;
    return ERR_OK;
}

enum err stack_dictionary_define_leaf(
    struct stack_dictionary *d, struct lane_producer *p, uint64_t base, uint64_t pc, uint32_t *slot)
{
    if (!lane_enter(p)) {
        return ERR_DEAD;
    }
    if (follow_losses(d, p)) {
        return ERR_LIMIT;
    }
    const enum err result = module_dictionary_introduce(&d->modules, p, pc, false);
    if (result == ERR_LIMIT) {
        stack_dictionary_reset(d);
        return ERR_LIMIT;
    }
    if (result != ERR_OK) {
        return ERR_DEAD;
    }
    const uint64_t name = stack_name(base, pc);
    const uint32_t chosen = choose_slot(d, name);
    uint64_t *packed = lane_producer_begin_stack(p, chosen, WIRE_STACK_HAS_SLOT, base, 1);
    if (packed == NULL) {
        return ERR_DEAD;
    }
    packed[0] = module_dictionary_frame(&d->modules, pc);
    lane_producer_advance(p, lane_stack_words(1));
    if (book_is_kept(p) && !book_leave_row(p, chosen)) {
        return ERR_DEAD;
    }
    lane_producer_publish(p); // for the same reason
    d->stacks.evictions += d->stacks.names[chosen] != 0;
    d->stacks.names[chosen] = name;
    *slot = chosen;
    return ERR_OK;
}
