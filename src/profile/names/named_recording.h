// SPDX-License-Identifier: MIT
// named_recording: a profile's recording together with the names that were looked up when it was
// opened, ready to be written to a file.
//
// It is a view: everything but the names is borrowed from the recording, which must outlive it.
// Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/model/profile.h"

DEFINE_VEC(named_frame_vec, struct rec_frame);
DEFINE_VEC(named_symbol_vec, struct rec_symbol);
DEFINE_VEC(named_module_vec, struct rec_module);
DEFINE_VEC(named_text_vec, char);

struct named_recording {
    struct recording recording; // borrows from the profile and from the fields below
    struct named_frame_vec frames;
    struct named_symbol_vec symbols;
    struct named_module_vec modules;
    struct named_text_vec texts;
    struct u64_vec text_offsets;
    uint64_t named_frames;  // frames whose names are not the recording's
    uint64_t named_modules; // modules with such frames
    bool is_changed;        // it has names, or beginnings of functions, that the recording lacks
};

// Errors: ERR_NO_MEMORY; ERR_LIMIT for too many names for one file. Call named_recording_release()
// in either case.
enum err named_recording_make(const struct profile *profile, struct named_recording *out) MUST_USE;
void named_recording_release(struct named_recording *named); // accepts a zeroed one
