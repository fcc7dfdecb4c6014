// SPDX-License-Identifier: MIT
// adhoc: the events that the program reported with cairn_event, by name and stack.
//
//   adhoc_collect(profile, ADHOC_BY_PROCESS, &list)   list.events, the heaviest first
//   list.locations[event->first + i]                  its frames, i < event->count; 0 is the name
//
// Reports, exports and the API all use this list. It covers the whole run: filters apply to the
// heap only. Context: H; one thread at a time.
#pragma once

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/model/profile.h"

enum adhoc_by {
    ADHOC_BY_PROCESS, // one entry for each name and stack of a process
    ADHOC_BY_STACK,   // all processes merged
};

struct adhoc_event {
    const char *name; // borrowed from the profile: the function of the first frame
    uint32_t process; // index; REC_NONE: all processes
    uint64_t events;
    uint64_t weight; // the sum of weights; saturates
    size_t first;    // first frame, in list.locations
    size_t count;
};

DEFINE_VEC(adhoc_event_vec, struct adhoc_event);

struct adhoc_list {
    struct adhoc_event_vec events; // owned; heaviest first
    struct u32_vec locations;      // owned; of the code index, innermost first
    struct u32_vec inlined;        // owned; 1 if inlined into the next location
};

enum err adhoc_collect(const struct profile *profile, enum adhoc_by by, struct adhoc_list *out)
    MUST_USE;
void adhoc_release(struct adhoc_list *list);
