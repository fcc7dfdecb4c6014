// SPDX-License-Identifier: MIT
// valgrind_place: frames in the form of Valgrind's tools, "0x10A2FA: main (t.cpp:10)".
//
// Equal texts are one frame. Context: H; one thread.
#pragma once

#include "formats/import/importer.h"
#include "host/containers/map_u64.h"

struct valgrind_places {
    struct map_u64 frame_of;  // owned; by the text's rec_string
    struct map_u64 module_of; // owned; by the path's rec_string
};

void valgrind_places_release(struct valgrind_places *places); // accepts a zeroed one

// Find or add the frame that `text` describes. Any other text becomes a function of that name.
enum err valgrind_place_frame(struct valgrind_places *places,
                              struct import *import,
                              struct bytes text,
                              uint32_t *out_frame) MUST_USE;
