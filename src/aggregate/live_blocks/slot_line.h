// SPDX-License-Identifier: MIT
// slot_line: the four slots of a live_table in one cache line.
//
// Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_SLOTS 4u // the masks are unrolled
#define KEY_BITS   47
#define KEY_MASK   (((uint64_t)1 << KEY_BITS) - 1)
#define KEY_BOXED  ((uint64_t)1 << KEY_BITS)

// A block. A box (live_boxes) has what does not fit.
struct live_slot {
    uint64_t key;   // address / 8 : 47, boxed : 1, low 16 bits of the size; 0: free
    uint64_t value; // row : 26, born : 34, high 4 bits of the size; if boxed: the first box
};

// Return a mask of the slots that hold `key`. It has no branches, because the matching slot is
// unpredictable. Shifting both sides drops the other bits of the word. It is unrolled, because
// compilers keep the loop.
static inline unsigned line_match_mask(const struct live_slot *line, uint64_t key)
{
    const uint64_t wanted = key << (64 - KEY_BITS);
    return (unsigned)(line[0].key << (64 - KEY_BITS) == wanted) |
           (unsigned)(line[1].key << (64 - KEY_BITS) == wanted) << 1 |
           (unsigned)(line[2].key << (64 - KEY_BITS) == wanted) << 2 |
           (unsigned)(line[3].key << (64 - KEY_BITS) == wanted) << 3;
}

// Return a mask of the free slots.
static inline unsigned line_free_mask(const struct live_slot *line)
{
    return (unsigned)(line[0].key == 0) | (unsigned)(line[1].key == 0) << 1 |
           (unsigned)(line[2].key == 0) << 2 | (unsigned)(line[3].key == 0) << 3;
}

static inline struct live_slot *line_free_slot(struct live_slot *line)
{
    unsigned free_slots = line_free_mask(line);
    return free_slots != 0 ? line + __builtin_ctz(free_slots) : NULL;
}

// Count the bits of a mask of four. The baseline has no instruction for it.
static inline unsigned bits_set(unsigned mask)
{
    return (unsigned)(0x4332322132212110ULL >> (mask * 4)) & 7;
}

// Return a free slot of the emptier of two lines: balance now avoids moving blocks later. A line
// that is half empty is good enough.
static inline struct live_slot *emptier_free_slot(struct live_slot *home, struct live_slot *other)
{
    unsigned home_free = line_free_mask(home);
    if ((home_free & (home_free - 1)) != 0) {
        return home + __builtin_ctz(home_free);
    }
    unsigned other_free = line_free_mask(other);
    bool is_home = bits_set(home_free) >= bits_set(other_free);
    unsigned free_slots = is_home ? home_free : other_free;
    struct live_slot *line = is_home ? home : other;
    return free_slots != 0 ? line + __builtin_ctz(free_slots) : NULL;
}
