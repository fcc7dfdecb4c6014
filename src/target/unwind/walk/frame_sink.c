// SPDX-License-Identifier: MIT
#include "target/unwind/walk/frame_sink.h"

#include "base/hash.h"
#include "session/wire.h"

#define CUT_STEP_MAX 64u

// Return a power of two, at most a quarter of the inner half.
static uint32_t cut_step(uint32_t max_frames)
{
    uint32_t step = CUT_STEP_MAX;
    while (step > 1 && step > max_frames / 8) {
        step /= 2;
    }
    return step;
}

struct frame_cut frame_cut_of(uint32_t count, uint32_t max_frames)
{
    uint32_t step = cut_step(max_frames);
    uint32_t earliest = count - frame_sink_inner_max(max_frames);
    return (struct frame_cut){.outer = frame_sink_outer_max(max_frames),
                              .inner_from = (earliest + step - 1) & ~(step - 1)};
}

size_t frame_sink_bytes(uint32_t max_frames)
{
    return ((size_t)max_frames + 1) * sizeof(uint64_t) +
           (size_t)max_frames * sizeof(struct unwind_frame);
}

void frame_sink_init(struct frame_sink *sink, void *memory, uint32_t max_frames)
{
    sink->max_frames = max_frames;
    sink->count = 0;
    sink->kept = memory;
    sink->inner = (uint64_t *)(sink->kept + max_frames);
    sink->ring = sink->inner + frame_sink_inner_max(max_frames);
}

// Return the pc of frame `index`, counted from the entry. The frame must have been kept.
static uint64_t pushed_pc(const struct frame_sink *sink, uint32_t index)
{
    uint32_t inner_max = frame_sink_inner_max(sink->max_frames);
    uint32_t from_leaf = sink->count - 1 - index;
    if (from_leaf < inner_max) {
        return sink->inner[from_leaf];
    }
    return sink->ring[(from_leaf - inner_max) % (frame_sink_outer_max(sink->max_frames) + 1)];
}

void frame_sink_finish(struct frame_sink *sink, struct unwind_walk *walk)
{
    struct frame_cut cut = {.outer = sink->count, .inner_from = sink->count};
    bool is_cut = sink->count > sink->max_frames;
    if (is_cut) {
        cut = frame_cut_of(sink->count, sink->max_frames);
    }
    uint64_t name = 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < cut.outer; i++) {
        uint64_t pc = pushed_pc(sink, i);
        name = stack_name(name, pc);
        sink->kept[kept++] = (struct unwind_frame){.pc = pc, .name = name};
    }
    if (is_cut) {
        name = stack_name(name, WIRE_FRAME_CUT);
        sink->kept[kept++] = (struct unwind_frame){.pc = WIRE_FRAME_CUT, .name = name};
    }
    for (uint32_t i = cut.inner_from; i < sink->count; i++) {
        uint64_t pc = pushed_pc(sink, i);
        name = stack_name(name, pc);
        sink->kept[kept++] = (struct unwind_frame){.pc = pc, .name = name};
    }
    *walk = (struct unwind_walk){
        .frames = sink->kept, .count = kept, .flags = is_cut ? UNWIND_CUT : 0, .name = name};
}

void cut_stack_make(struct cut_stack *cut,
                    uint32_t max_frames,
                    const struct unwind_frame *whole,
                    uint32_t count,
                    uint32_t changed,
                    struct unwind_walk *walk)
{
    const struct frame_cut at = frame_cut_of(count, max_frames);
    uint32_t kept_changed = changed;
    if (changed >= at.outer) {
        kept_changed = at.outer + 1 + (changed > at.inner_from ? changed - at.inner_from : 0);
    }
    if (cut->inner_from != at.inner_from) {
        kept_changed = changed < at.outer ? changed : at.outer;
    }
    const uint32_t kept = at.outer + 1 + count - at.inner_from;
    const uint32_t from = cut->inner_from != 0 ? kept_changed : 0;
    uint64_t name = from > 0 ? cut->frames[from - 1].name : 0;
    for (uint32_t i = from; i < kept; i++) {
        uint64_t pc = WIRE_FRAME_CUT;
        if (i != at.outer) {
            pc = whole[i < at.outer ? i : i - at.outer - 1 + at.inner_from].pc;
        }
        name = stack_name(name, pc);
        cut->frames[i] = (struct unwind_frame){.pc = pc, .name = name};
    }
    cut->inner_from = at.inner_from;
    *walk = (struct unwind_walk){.frames = cut->frames,
                                 .count = kept,
                                 .changed_from = kept_changed < kept ? kept_changed : kept,
                                 .flags = UNWIND_CUT,
                                 .name = cut->frames[kept - 1].name};
}
