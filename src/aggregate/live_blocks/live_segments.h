// SPDX-License-Identifier: MIT
// live_segments: the memory of a live_table: segments of slots, and the directory that finds them.
//
// segment_place.h finds the places of an address, and segment_growth.h changes the segments.
// Context: H, one thread.
#pragma once

#include <stdint.h>

#include "host/containers/vec.h"

enum {
    SEGMENT_DEPTH_MAX = 20,
};

struct live_slot; // see slot_line.h

struct live_segment {
    struct live_slot *slots; // owned; page_count pages of 256 slots
    uint32_t page_count;
    uint32_t used_count;
    uint32_t depth; // number of top bits of the hash that all its addresses share
};

DEFINE_VEC(live_segment_vec, struct live_segment);

struct live_segments {
    uint64_t seed;
    uint32_t *directory; // owned; 1 << depth segment numbers
    uint32_t depth;
    struct live_segment_vec list; // owned
    uint32_t kept_pages;          // a segment of at most so many pages does not shrink
    uint64_t page_count;          // of all segments
};
