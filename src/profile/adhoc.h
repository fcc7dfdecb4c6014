// SPDX-License-Identifier: MIT
// adhoc: what the program reported that is no allocation (cairn_event), by stack.
//
// Whole runs only: filters speak of the heap. Context: H.
#pragma once

#include "base/err.h"
#include "host/json_writer.h"
#include "host/vec.h"
#include "profile/profile.h"

// Indices into recording.adhoc, the heaviest first.
enum err adhoc_ranked(const struct profile *profile, struct u32_vec *out) MUST_USE;

// An array under the key "adhoc": {name, pid, events, weight, frames} each, the heaviest first.
enum err adhoc_write_json(struct json_writer *w, const struct profile *profile) MUST_USE;
