// SPDX-License-Identifier: MIT
#include "target/preload/python/python_frames.h"

#include <stdatomic.h>

#include "base/hash.h"
#include "target/preload/python/python_chain.h"
#include "target/preload/python/python_memory.h"

enum {
    CODES = 1024, // places of by_code
};

#define NOWHERE UINT32_MAX

size_t python_frames_bytes(uint32_t capacity)
{
    return sizeof(struct python_frames) +
           (size_t)capacity * (2 * sizeof(struct python_frame) + sizeof(struct unwind_insert) +
                               sizeof(struct python_code_facts) + 2 * sizeof(uint32_t)) +
           CODES * sizeof(uint32_t);
}

struct python_frames *python_frames_init(void *memory, uint32_t capacity)
{
    struct python_frames *p = memory;
    *p = (struct python_frames){.capacity = capacity};
    p->frames = (struct python_frame *)(p + 1);
    p->fresh = p->frames + capacity;
    p->inserts = (struct unwind_insert *)(p->fresh + capacity);
    p->facts = (struct python_code_facts *)(p->inserts + capacity);
    p->by_frame = (uint32_t *)(p->facts + capacity);
    p->by_code = p->by_frame + 2 * (size_t)capacity;
    return p;
}

static uint32_t *place_of_frame(const struct python_frames *p, uint64_t frame)
{
    return &p->by_frame[hash_mix(frame) & (2 * p->capacity - 1)];
}

static uint32_t *place_of_code(const struct python_frames *p, uint64_t code)
{
    return &p->by_code[hash_mix(code) % CODES];
}

// Return the index of the remembered frame at `frame`; NOWHERE if there is none, or none is found.
static uint32_t find(const struct python_frames *p, uint64_t frame)
{
    const uint32_t i = *place_of_frame(p, frame);
    return i < p->count && p->frames[i].frame == frame ? i : NOWHERE;
}

static bool push_fresh(struct python_frames *p, const struct python_frame *frame)
{
    if (p->fresh_count == p->capacity) {
        return false;
    }
    p->fresh[p->fresh_count++] = *frame;
    return true;
}

// Whether `at` is remembered frame `met`, as far as is known before it is read.
static bool is_at(const struct python_frames *p, uint32_t met, const struct python_frame *at)
{
    return met != NOWHERE && p->frames[met].cframe == at->cframe;
}

// From remembered frame `*i` outwards, skip those that hold. Returns whether all do; else `*i` is
// the first that does not. It is alive.
static bool all_hold(const struct python_frames *p, const struct python_layout *layout, uint32_t *i)
{
    const struct python_layout copy = *layout; // a copy, which no store can change
    const struct python_frame *f = &p->frames[*i];
    for (; python_chain_is(&copy, f, f > p->frames ? f - 1 : NULL); f--) {
        if (UNLIKELY(f->has_facts) && !python_code_is(&copy, &p->facts[f - p->frames])) {
            break;
        }
        if (f == p->frames) {
            return true;
        }
    }
    *i = (uint32_t)(f - p->frames);
    return false;
}

// Walk, and find out which frames stay: [0, known). The others are fresh. False: no room.
static bool walk(struct python_frames *p,
                 const struct python_layout *layout,
                 struct python_frame at,
                 uint32_t *known)
{
    *known = 0;
    while (at.frame != 0) {
        const uint32_t met = find(p, at.frame);
        if (is_at(p, met, &at)) {
            uint32_t i = met;
            if (all_hold(p, layout, &i)) {
                *known = met + 1;
                return true;
            }
            for (uint32_t k = met; k > i; k--) { // they hold, but stay only with those further out
                if (!push_fresh(p, &p->frames[k])) {
                    return false;
                }
            }
            at = p->frames[i];
        }
        struct python_frame next;
        if (!python_chain_read(layout, &at, &next)) {
            return true; // all that is further out stays native
        }
        if (!push_fresh(p, &at)) {
            return false;
        }
        at = next;
    }
    return true;
}

// Return the facts about the code of frame `i`, which may be at a frame further out; NULL if the
// code cannot be read.
static const struct python_code_facts *
facts_of(struct python_frames *p, const struct python_layout *layout, uint32_t i)
{
    struct python_frame *f = &p->frames[i];
    uint32_t *first = place_of_code(p, f->code);
    f->has_facts = false;
    if (*first < i && p->frames[*first].has_facts && p->frames[*first].code == f->code) {
        return &p->facts[*first];
    }
    if (!python_code_read(layout, f->code, &p->facts[i])) {
        return NULL;
    }
    f->has_facts = true;
    *first = i;
    return &p->facts[i];
}

// Append a frame further in. If its code cannot be read, or its place is unknown, it and all
// further out are forgotten: they stay native.
static uint32_t append(struct python_frames *p,
                       const struct python_layout *layout,
                       uint32_t count,
                       const struct python_frame *frame)
{
    p->frames[count] = *frame;
    uint64_t place = frame->cframe != 0 ? frame->cframe : frame->variable;
    if (place == 0 && count > 0) {
        place = p->inserts[count - 1].place;
    }
    const struct python_code_facts *facts = place != 0 ? facts_of(p, layout, count) : NULL;
    if (facts == NULL) {
        return 0;
    }
    p->inserts[count] = (struct unwind_insert){
        .pc = python_code_pc(layout, facts, frame->instruction), .place = place};
    *place_of_frame(p, frame->frame) = count;
    return count + 1;
}

bool python_frames_walk(struct python_frames *p,
                        const struct python_layout *layout,
                        const struct python_frame *innermost)
{
    uint32_t known;
    p->fresh_count = 0;
    const bool has_room =
        walk(p, layout, *innermost, &known) && known + p->fresh_count <= p->capacity;
    if (has_room && known == p->count && p->fresh_count == 0) {
        return true;
    }
    p->count = 0;
    atomic_signal_fence(memory_order_seq_cst);
    p->same = p->same < known ? p->same : known;
    if (!has_room) {
        p->same = 0;
        return false;
    }
    uint32_t count = known;
    for (uint32_t i = p->fresh_count; i > 0; i--) {
        count = append(p, layout, count, &p->fresh[i - 1]);
        p->same = p->same < count ? p->same : count;
    }
    atomic_signal_fence(memory_order_seq_cst);
    p->count = count;
    return true;
}

struct unwind_inserts python_frames_inserts(const struct python_frames *p)
{
    return (struct unwind_inserts){
        .items = p->inserts, .count = p->count, .same = p->same < p->count ? p->same : p->count};
}

void python_frames_taken(struct python_frames *p)
{
    p->same = UINT32_MAX;
}
