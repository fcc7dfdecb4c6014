// SPDX-License-Identifier: MIT
// named_recording: a profile's recording with the names in it that were looked up when it was
// opened, so that it can be written with them.
//
// A view: what is not about names is the recording's own, which must outlive it. Context: H.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/model/profile.h"

DEFINE_VEC(named_frame_vec, struct rec_frame);
DEFINE_VEC(named_symbol_vec, struct rec_symbol);
DEFINE_VEC(named_module_vec, struct rec_module);
DEFINE_VEC(named_text_vec, char);

struct named_recording {
    struct recording recording; // borrows from the profile and from what follows
    struct named_frame_vec frames;
    struct named_symbol_vec symbols;
    struct named_module_vec modules;
    struct named_text_vec texts;
    struct u64_vec text_offsets;
    uint64_t named_frames;  // whose names are not the recording's
    uint64_t named_modules; // with such frames
};

// ERR_NO_MEMORY, ERR_LIMIT (too many names for one file). named_recording_release() in either case.
enum err named_recording_make(const struct profile *profile, struct named_recording *out) MUST_USE;
void named_recording_release(struct named_recording *named); // accepts a zeroed one
