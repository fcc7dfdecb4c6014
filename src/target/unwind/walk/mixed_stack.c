// SPDX-License-Identifier: MIT
#include "target/unwind/walk/mixed_stack.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "base/hash.h"

size_t mixed_stack_bytes(uint32_t capacity, uint32_t max_frames)
{
    return sizeof(struct mixed_stack) +
           ((size_t)capacity + max_frames) * sizeof(struct unwind_frame) +
           ((size_t)capacity + 1) * sizeof(struct mixed_part);
}

struct mixed_stack *mixed_stack_init(void *memory, uint32_t capacity, uint32_t max_frames)
{
    struct mixed_stack *m = memory;
    *m = (struct mixed_stack){.capacity = capacity};
    m->cut.frames = (struct unwind_frame *)(m + 1);
    m->frames = m->cut.frames + max_frames;
    m->parts = (struct mixed_part *)(m->frames + capacity);
    return m;
}

// The memory of native frame `i` is [low, high).
static uint64_t low_of(const struct walk_cache *r, uint32_t i)
{
    return r->states[i].sp;
}

static uint64_t high_of(const struct walk_cache *r, uint32_t i, uint64_t top)
{
    return i > 0 ? r->states[i - 1].sp : top;
}

// Return the first native frame whose part can have changed.
static uint32_t first_changed(const struct mixed_stack *m,
                              const struct walk_cache *r,
                              uint32_t native_same,
                              const struct unwind_inserts *inserts)
{
    uint32_t i = native_same < m->native_count ? native_same : m->native_count;
    i = i < r->count ? i : r->count;
    while (i > 0) {
        const uint32_t next = m->parts[i].insert; // the first that is not in an earlier part
        const bool may_have_more =
            next < inserts->count && inserts->items[next].place >= low_of(r, i - 1);
        if (next <= inserts->same && !may_have_more) {
            break;
        }
        i--;
    }
    return i;
}

// Return how many frames at the beginning of a part are as they were. They are of the language, and
// none of its inserts was left out.
static uint32_t same_in_part(const struct mixed_stack *m,
                             const struct walk_cache *r,
                             uint64_t top,
                             uint32_t native,
                             const struct unwind_inserts *inserts)
{
    const struct mixed_part begin = m->parts[native];
    const struct mixed_part end = m->parts[native + 1];
    const uint32_t same_end = end.insert < inserts->same ? end.insert : inserts->same;
    return end.insert - begin.insert == end.frame - begin.frame && same_end > begin.insert &&
                   inserts->items[begin.insert].place < high_of(r, native, top)
               ? same_end - begin.insert
               : 0;
}

static bool push(struct mixed_stack *m, uint32_t *count, uint64_t pc)
{
    if (*count == m->capacity) {
        return false;
    }
    const uint64_t outer = *count > 0 ? m->frames[*count - 1].name : 0;
    m->frames[(*count)++] = (struct unwind_frame){.pc = pc, .name = stack_name(outer, pc)};
    return true;
}

uint32_t mixed_stack_make(struct mixed_stack *mixed,
                          const struct walk_cache *r,
                          uint64_t top,
                          uint32_t native_same,
                          const struct unwind_inserts *inserts)
{
    uint32_t i = first_changed(mixed, r, native_same, inserts);
    struct mixed_part at = {0};
    if (mixed->native_count > 0) {
        at = mixed->parts[i];
    }
    uint32_t same = 0;
    if (i < native_same && i < mixed->native_count) {
        same = same_in_part(mixed, r, top, i, inserts);
    }
    const uint32_t changed = at.frame + same;
    mixed->native_count = 0;
    atomic_signal_fence(memory_order_seq_cst);
    for (; i < r->count; i++) {
        if (i == mixed->capacity) {
            return UINT32_MAX;
        }
        mixed->parts[i] = at;
        bool is_native = same == 0;
        at.frame += same;
        at.insert += same;
        same = 0;
        for (; at.insert < inserts->count && inserts->items[at.insert].place >= low_of(r, i);
             at.insert++) {
            if (inserts->items[at.insert].place >= high_of(r, i, top)) {
                continue; // of another stack
            }
            is_native = false;
            if (!push(mixed, &at.frame, inserts->items[at.insert].pc)) {
                return UINT32_MAX;
            }
        }
        if (is_native && !push(mixed, &at.frame, r->frames[i].pc)) {
            return UINT32_MAX;
        }
    }
    mixed->parts[i] = at;
    mixed->count = at.frame;
    atomic_signal_fence(memory_order_seq_cst);
    mixed->native_count = i;
    return changed;
}

void mixed_stack_result(struct mixed_stack *mixed,
                        uint32_t max_frames,
                        uint32_t changed,
                        struct unwind_walk *walk)
{
    if (mixed->count > max_frames) {
        cut_stack_make(&mixed->cut, max_frames, mixed->frames, mixed->count, changed, walk);
    } else {
        mixed->cut.inner_from = 0;
        *walk = (struct unwind_walk){.frames = mixed->frames,
                                     .count = mixed->count,
                                     .changed_from = changed,
                                     .name = mixed->frames[mixed->count - 1].name};
    }
    mixed->name = walk->name;
}
