// SPDX-License-Identifier: MIT
// adhoc: what the program reported that is no allocation (cairn_event), by name and stack.
//
//   adhoc_collect(profile, ADHOC_BY_PROCESS, &list)   list.events, the heaviest first
//   list.locations[event->first + i]                  its frames, i < event->count; 0 is the name
//
// Reports, exports and the API all say what is collected here. Of the whole run: filters speak of
// the heap. Context: H; one thread at a time.
#pragma once

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/model/profile.h"

enum adhoc_by {
    ADHOC_BY_PROCESS, // a name and stack of each process
    ADHOC_BY_STACK,   // of all processes together
};

struct adhoc_event {
    const char *name; // borrowed from the profile: the function of the first frame
    uint32_t process; // index; REC_NONE: of all
    uint64_t events;
    uint64_t weight; // their sum; stays at the largest number if it is larger
    size_t first;    // of its frames
    size_t count;
};

DEFINE_VEC(adhoc_event_vec, struct adhoc_event);

struct adhoc_list {
    struct adhoc_event_vec events; // owned; the heaviest first
    struct u32_vec locations;      // owned; of the code index, innermost first
    struct u32_vec inlined;        // owned; not 0: into the next one
};

enum err adhoc_collect(const struct profile *profile, enum adhoc_by by, struct adhoc_list *out)
    MUST_USE;
void adhoc_release(struct adhoc_list *list);
