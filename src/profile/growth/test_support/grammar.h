// SPDX-License-Identifier: MIT
// grammar: programs whose patterns are drawn, not written. A seed draws each from a grammar,
// together with what is true of it.
//
//   program = [idle gap] track [track] [idle tail]
//   track   = [wait] body [calm]
//   body    = leak, steps, array, doubled table, replaced buffers, queue       (they grow)
//           | ring, sessions, teeth, bursts                                    (they are renewed)
//           | filled cache, blocks of the start                                (they stop)
//
// While a track waits or is calm, the program works elsewhere. The truth follows from the tracks
// alone: what grows as long as there was work is growing, if much of the memory is its.
// Context: H; of tests.
#pragma once

#include "profile/growth/test_support/drawn_patterns.h"

enum {
    GRAMMAR_NAME_BYTES = 200
};

struct grammar_program {
    struct drawn_pattern pattern; // its name is `name`
    char name[GRAMMAR_NAME_BYTES];
};

// Draw a program; it is played by drawn_run_play until the next one is drawn.
void grammar_draw(uint64_t seed, struct grammar_program *out);

// Return whether the truth is clear after the run: no track with other truth holds as much.
bool grammar_is_clear(void);
