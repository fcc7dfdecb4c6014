// SPDX-License-Identifier: MIT
// stack_dictionary: the stacks and nodes that the recorder already knows on one lane.
//
// Two direct-mapped tables of 64-bit names (unwind.h):
//   names[slot]   the stack that the recorder's side of the lane holds at `slot`; a stack has two
//                 possible slots, named by the low bits of its name's halves, so finding it takes
//                 one or two loads, and two stacks rarely evict each other again and again
//   nodes[...]    nodes that were sent on this lane; a newer node replaces an older one, which is
//                 then sent again if needed
// A stack that is not in `names` is sent as STACK from its deepest node in `nodes` on.
//
// Both tables begin small, beside the thread's other state, move to memory of their own when they
// evict much, and double there. So a thread with few stacks costs little. After a growth, entries
// at their right index stay valid; the others are sent again on demand.
//
// Invariant: a name in `nodes` was sent since the last MODULE with WIRE_MODULE_RESET. A table entry
// is written only after its record was advanced. Context: T, the lane's own thread under the guard.
// Memory: the lane's, zero (no name is 0).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/err.h"
#include "target/preload/stacks/module_dictionary.h"
#include "target/producer/lane_producer.h"

struct unwind_frame;

#define STACK_DICTIONARY_MIN 128u
#define STACK_SLOT_NONE      UINT32_MAX

struct name_table {
    uint64_t *names;    // mask + 1 of them: `first` of its dictionary's memory, later `grown`
    uint64_t *grown;    // room for `max` of them
    uint32_t mask;      // entries in use - 1
    uint32_t max;       // power of two
    uint32_t evictions; // since the last growth
};

// The memory of a dictionary: zeroed, borrowed from the lane. `first_*` is touched at once, the
// rest when the dictionary grows.
struct stack_dictionary_memory {
    uint64_t *first_names;              // 2 * STACK_DICTIONARY_MIN
    uint64_t *grown_names;              // 2 * names_max
    uint32_t names_max;                 // of each table; power of two
    struct module_entry *first_modules; // MODULE_DICTIONARY_MIN
    struct module_entry *grown_modules; // MODULE_DICTIONARY_MAX
};

struct stack_dictionary {
    struct name_table stacks;
    struct name_table nodes;
    struct module_dictionary modules;
    uint32_t seen_losses; // session_header.stack_losses
};

// A stack from the unwinder; `frames` outermost first.
struct stack_view {
    const struct unwind_frame *frames;
    uint32_t count;
    uint32_t flags; // enum unwind_flags
    uint64_t name;
};

void stack_dictionary_init(struct stack_dictionary *d,
                           const struct stack_dictionary_memory *memory);

// Send everything again from now on: code was unloaded, or the recorder's state is uncertain.
void stack_dictionary_reset(struct stack_dictionary *d);

ALWAYS_INLINE uint32_t stack_dictionary_first(const struct stack_dictionary *d, uint64_t name)
{
    return (uint32_t)name & d->stacks.mask;
}

ALWAYS_INLINE uint32_t stack_dictionary_second(const struct stack_dictionary *d, uint64_t name)
{
    return (uint32_t)(name >> 32) & d->stacks.mask;
}

// Whether the recorder knows the stack `name` by one of its slots. Name 0, the empty stack, is
// never known.
ALWAYS_INLINE bool
stack_dictionary_holds(const struct stack_dictionary *d, uint32_t slot, uint64_t name)
{
    return d->stacks.names[slot] == name && name != 0;
}

// Return the slot of a stack that the recorder knows, or STACK_SLOT_NONE.
ALWAYS_INLINE uint32_t stack_dictionary_find(const struct stack_dictionary *d, uint64_t name)
{
    const uint32_t first = stack_dictionary_first(d, name);
    if (LIKELY(stack_dictionary_holds(d, first, name))) {
        return first;
    }
    const uint32_t second = stack_dictionary_second(d, name);
    return stack_dictionary_holds(d, second, name) ? second : STACK_SLOT_NONE;
}

// Send the definition of `stack` and all definitions that it needs. Enters the lane (lane_entry.h).
// ERR_DEAD: recording has ended.
MUST_USE enum err stack_dictionary_define(struct stack_dictionary *d,
                                          struct lane_producer *p,
                                          const struct stack_view *stack,
                                          uint32_t *slot);

// Send the definition of a stack: the stack named `base`, which has a slot, plus one frame at `pc`.
// Enters the lane. ERR_LIMIT: everything had to be forgotten, `base` too; ERR_DEAD: recording has
// ended.
MUST_USE enum err stack_dictionary_define_leaf(struct stack_dictionary *d,
                                               struct lane_producer *p,
                                               uint64_t base,
                                               uint64_t pc,
                                               uint32_t *slot);
