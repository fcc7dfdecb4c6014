// SPDX-License-Identifier: MIT
#include "target/preload/python/python_chain.h"

#include <stddef.h>

#include "target/preload/python/python_memory.h"

enum {
    EMPTY_MAX = 1 << 16, // calls without a frame, one after the other
    YIELD_FROM = 72,     // of 3.10
    UNIT_BYTES = 2,
};

static bool is_cframe(const struct python_layout *l, uint64_t cframe)
{
    return cframe != 0 && cframe % sizeof(uint64_t) == 0 &&
           python_memory_holds(cframe, l->cframe.bytes);
}

// Find the first frame of `cframe` or of one further out.
static struct python_frame enter_cframe(const struct python_layout *l, uint64_t cframe)
{
    for (uint32_t i = 0; i < EMPTY_MAX && is_cframe(l, cframe); i++) {
        const uint64_t frame = python_word(cframe + l->cframe.frame);
        if (frame != 0) {
            return (struct python_frame){.frame = frame,
                                         .cframe = l->frame.owner != 0 ? 0 : cframe};
        }
        cframe = python_word(cframe + l->cframe.previous);
    }
    return (struct python_frame){0};
}

static bool is_frame(const struct python_layout *l, uint64_t frame)
{
    return frame != 0 && frame % sizeof(uint64_t) == 0 &&
           python_memory_holds(frame, l->frame.bytes);
}

// 3.10: whether a frame, whose depth says that no call runs it, waits for another generator.
static bool waits(const struct python_layout *l, const struct python_frame *f)
{
    const uint64_t place = f->code + l->code.bytecode;
    const uint64_t unit = (uint64_t)(uint32_t)f->instruction + 1;
    if (f->code % sizeof(uint64_t) != 0 || !python_memory_holds(place, sizeof(uint64_t))) {
        return false;
    }
    const uint64_t code = python_word(place) + l->bytes.data + unit * UNIT_BYTES;
    return python_memory_holds(code, 1) && python_byte(code) == YIELD_FROM;
}

// 3.11: whether a call began with the marked frame `f`. A suspended generator keeps its mark when
// throw() puts it into the chain of another call.
static bool began_its_call(const struct python_layout *l, const struct python_frame *f)
{
    const uint64_t outer = python_word(f->cframe + l->cframe.previous);
    return f->previous == 0 ||
           (is_cframe(l, outer) && f->previous == python_word(outer + l->cframe.frame));
}

// 3.10: return the cframe of the frame after `f`, 0 if there is none.
static uint64_t cframe_after(const struct python_layout *l, const struct python_frame *f)
{
    return f->is_entry ? python_word(f->cframe + l->cframe.previous) : f->cframe;
}

static bool is_variable(const struct python_layout *l, uint64_t frame)
{
    return python_byte(frame + l->frame.owner) == l->frame.c_stack;
}

// Leave out variables at the beginning of the chain. Returns the first of them, 0 if there is none.
static uint64_t skip_variables(const struct python_layout *l, uint64_t *frame)
{
    uint64_t variable = 0;
    for (uint32_t i = 0; i < EMPTY_MAX && is_frame(l, *frame) && is_variable(l, *frame); i++) {
        variable = variable != 0 ? variable : *frame;
        *frame = python_word(*frame + l->frame.previous);
    }
    return variable;
}

void python_chain_begin(const struct python_layout *layout,
                        uint64_t state,
                        struct python_frame *innermost)
{
    *innermost = (struct python_frame){0};
    const uint64_t place = state + layout->thread.frame;
    if (state == 0 || state % sizeof(uint64_t) != 0 ||
        !python_memory_holds(place, sizeof(uint64_t))) {
        return;
    }
    if (layout->thread.cframe != 0) {
        const uint64_t cframe = python_word(state + layout->thread.cframe);
        if (is_cframe(layout, cframe)) {
            *innermost = (struct python_frame){.frame = python_word(place), .cframe = cframe};
        }
    } else if (layout->cframe.bytes != 0) {
        *innermost = enter_cframe(layout, python_word(place));
    } else {
        innermost->frame = python_word(place);
    }
    if (layout->frame.owner != 0) {
        (void)skip_variables(layout, &innermost->frame); // its call has no frame yet
    }
}

bool python_chain_read(const struct python_layout *layout,
                       struct python_frame *at,
                       struct python_frame *next)
{
    if (!is_frame(layout, at->frame)) {
        return false;
    }
    at->code = python_chain_code(layout, at->frame);
    at->instruction = python_word(at->frame + layout->frame.instruction);
    at->previous = python_word(at->frame + layout->frame.previous);
    at->variable = 0;
    *next = (struct python_frame){.frame = at->previous, .cframe = at->cframe};
    if (layout->frame.owner != 0) {
        at->variable = skip_variables(layout, &next->frame);
        return true;
    }
    at->is_entry = python_chain_leaves(layout, at->frame);
    if (layout->frame.depth != 0) {
        at->is_entry = at->is_entry || !waits(layout, at);
        next->cframe = cframe_after(layout, at);
        return next->frame == 0 || is_cframe(layout, next->cframe);
    }
    at->is_entry = at->is_entry && began_its_call(layout, at);
    if (at->is_entry || next->frame == 0) {
        *next = enter_cframe(layout, python_word(at->cframe + layout->cframe.previous));
    }
    return true;
}

bool python_chain_leads_to(const struct python_layout *layout,
                           const struct python_frame *f,
                           const struct python_frame *outer)
{
    struct python_frame next = {.frame = f->previous, .cframe = f->cframe};
    if (layout->frame.owner != 0) {
        return skip_variables(layout, &next.frame) == f->variable &&
               next.frame == (outer != NULL ? outer->frame : 0);
    }
    if (layout->frame.depth != 0) {
        next.cframe = cframe_after(layout, f);
    } else if (f->is_entry || f->previous == 0) {
        next = enter_cframe(layout, python_word(f->cframe + layout->cframe.previous));
    }
    return next.frame == (outer != NULL ? outer->frame : 0) &&
           (outer == NULL || next.cframe == outer->cframe);
}
