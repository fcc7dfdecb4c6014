// SPDX-License-Identifier: MIT
// dhat_frames: the frame table "ftbl" of a DHAT file, to which program points refer.
//
//   dhat_frames_init(&frames, profile)
//   dhat_frames_refer(&frames, location, w)    while program points are written; REC_NONE: no stack
//   dhat_frames_write(&frames, w)              then the table
//
// Context: H; one thread at a time.
#pragma once

#include "base/err.h"
#include "host/containers/vec.h"
#include "host/text/json_writer.h"
#include "profile/model/profile.h"

struct dhat_frames {
    const struct profile *profile; // borrowed
    struct u32_vec ids;            // owned; by location; 0: not in the table
    struct u32_vec locations;      // owned; in the order of their ids, from 1 on
};

enum err dhat_frames_init(struct dhat_frames *frames, const struct profile *profile) MUST_USE;
void dhat_frames_release(struct dhat_frames *frames);

// Find or add the id of a location, and write it.
enum err dhat_frames_refer(struct dhat_frames *frames, uint32_t location, struct json_writer *w)
    MUST_USE;

// Write the key "ftbl" and its array.
enum err dhat_frames_write(const struct dhat_frames *frames, struct json_writer *w) MUST_USE;
