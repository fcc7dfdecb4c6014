// SPDX-License-Identifier: MIT
// policies: programs that are drawn by how they keep memory, not by the curve of it. A seed draws
// each, together with whether it leaks.
//
//   program = [start] policy x pace x sizes [+ loss] [idle tail]
//   policy  = lives of random or equal length, cache by keys, random eviction, elastic pool,
//             garbage that is collected, jobs, connections that come and go           (no leak)
//           | keys without end, service slower than arrivals, survivors of collections,
//             longer and longer lives, strings that grow, jobs that leave a rest      (leak)
//   pace    = even, waves, on and off, rising, rare and heavy
//   sizes   = equal, uniform, few large ones, powers of two
//   loss    = now and then a block of a policy without leak is never freed            (leak)
//
// Context: H; of tests.
#pragma once

#include "profile/growth/test_support/drawn_patterns.h"

enum {
    POLICY_NAME_BYTES = 160
};

struct policy_program {
    struct drawn_pattern pattern; // its name is `name`
    char name[POLICY_NAME_BYTES];
};

// Draw a program; it is played by drawn_run_play until the next one is drawn.
void policies_draw(uint64_t seed, struct policy_program *out);

// Return whether the truth is clear after the run: what has leaked is as much as the program held
// besides, and not of the last moments only.
bool policies_are_clear(void);
