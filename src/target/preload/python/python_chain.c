// SPDX-License-Identifier: MIT
#include "target/preload/python/python_chain.h"

#include <stddef.h>

#include "target/preload/python/python_memory.h"

enum {
    EMPTY_MAX = 1 << 16, // calls without a frame, one after the other
};

// Find the first frame of `cframe` or of one further out.
static struct python_frame enter_cframe(const struct python_layout *l, uint64_t cframe)
{
    for (uint32_t i = 0; i < EMPTY_MAX && cframe != 0; i++) {
        if (cframe % sizeof(uint64_t) != 0 || !python_memory_holds(cframe, l->cframe.bytes)) {
            break;
        }
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
    if (layout->cframe.bytes != 0) {
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
    at->is_entry = python_byte(at->frame + layout->frame.is_entry) != 0;
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
    if (f->is_entry || f->previous == 0) {
        next = enter_cframe(layout, python_word(f->cframe + layout->cframe.previous));
    }
    return next.frame == (outer != NULL ? outer->frame : 0) &&
           (outer == NULL || next.cframe == outer->cframe);
}
