// SPDX-License-Identifier: MIT
// frame_sink: collects the frames of a walk, innermost first, and makes a named stack of them.
//
// From a stack of more than max_frames frames it keeps the outer half and the inner half, with one
// WIRE_FRAME_CUT in between; memory is bounded at any depth:
//
//   walk:    leaf ................................................ entry
//   kept:    inner[0 .. inner_max)      (dropped)       outer, a ring of the latest
//
// The cut moves in steps: the inner half begins at a frame whose distance from the entry is a
// multiple of cut_step. So a recursion that becomes a little deeper keeps the names of its earlier
// frames. Owns: nothing; lives in the caller's memory. Context: T and H.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "target/unwind/unwind.h"

struct frame_sink {
    uint32_t max_frames;
    uint32_t count; // frames pushed
    uint64_t *inner;
    uint64_t *ring;
    struct unwind_frame *kept; // the result
};

// Describes how a stack of `count` > max_frames frames is cut: frames [0, outer) and [inner_from,
// count) are kept, counted from the entry.
struct frame_cut {
    uint32_t outer;
    uint32_t inner_from;
};

struct frame_cut frame_cut_of(uint32_t count, uint32_t max_frames);

// The last result, if it was a cut stack.
struct cut_stack {
    struct unwind_frame *frames; // max_frames
    uint32_t inner_from;         // of its cut; 0: it was not cut
};

// Cut a named stack of `count` > max_frames frames, and fill `walk`. Of its flags set only
// UNWIND_CUT. `changed` is the first frame that differs from the last result's.
void cut_stack_make(struct cut_stack *cut,
                    uint32_t max_frames,
                    const struct unwind_frame *whole,
                    uint32_t count,
                    uint32_t changed,
                    struct unwind_walk *walk);

size_t frame_sink_bytes(uint32_t max_frames);

// Prepare a sink in `memory` of frame_sink_bytes().
void frame_sink_init(struct frame_sink *sink, void *memory, uint32_t max_frames);

ALWAYS_INLINE uint32_t frame_sink_outer_max(uint32_t max_frames)
{
    return max_frames / 2;
}

ALWAYS_INLINE uint32_t frame_sink_inner_max(uint32_t max_frames)
{
    return max_frames - max_frames / 2 - 1;
}

ALWAYS_INLINE void frame_sink_push(struct frame_sink *sink, uint64_t pc)
{
    uint32_t inner_max = frame_sink_inner_max(sink->max_frames);
    if (sink->count < inner_max) {
        sink->inner[sink->count] = pc;
    } else {
        uint32_t ring_len = frame_sink_outer_max(sink->max_frames) + 1;
        sink->ring[(sink->count - inner_max) % ring_len] = pc;
    }
    sink->count++;
}

// Name the pushed frames, cut them if needed, and fill `walk`. Of its flags set only UNWIND_CUT.
void frame_sink_finish(struct frame_sink *sink, struct unwind_walk *walk);
