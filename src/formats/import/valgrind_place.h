// SPDX-License-Identifier: MIT
// valgrind_place: frames in the form of Valgrind's tools, "0x10A2FA: main (t.cpp:10)".
//
// Equal texts are one frame. Context: H; one thread.
#pragma once

#include "formats/import/importer.h"
#include "host/containers/map_u64.h"

// Find or add the frame that `text` describes. Any other text becomes a function of that name.
// `frame_of` has the known frames, by the rec_string of their text.
enum err valgrind_place_frame(struct map_u64 *frame_of,
                              struct import *import,
                              struct bytes text,
                              uint32_t *out_frame) MUST_USE;
