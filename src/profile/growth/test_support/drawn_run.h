// SPDX-License-Identifier: MIT
// drawn_run: what a pattern may do in a tick of its run (drawn_patterns.h). Context: H; of tests.
#pragma once

#include "profile/growth/test_support/drawn_patterns.h"

enum {
    DRAWN_NEVER = -1,
};

unsigned drawn_below(struct drawn_run *run, unsigned limit);

// A figure of the run between `low` and `high`.
unsigned drawn_figure(const struct drawn_run *run, size_t figure, unsigned low, unsigned high);

// The elapsed part of the run, in thousandths.
unsigned drawn_at(const struct drawn_run *run);

// Whether this tick is the first of its `of`-th part of the run.
bool drawn_is_step(const struct drawn_run *run, unsigned of);

// Allocate a block of `units` for `ticks`, or DRAWN_NEVER. Return its number.
int drawn_take(struct drawn_run *run, unsigned units, int ticks);
void drawn_free(struct drawn_run *run, int block);
void drawn_free_all(struct drawn_run *run);
void drawn_free_oldest(struct drawn_run *run);
void drawn_free_any(struct drawn_run *run);
// Allocate blocks of `units` that soon are freed.
void drawn_churn(struct drawn_run *run, unsigned blocks, unsigned units);
// Replace a block by one of `units`. Return its number.
int drawn_resize(struct drawn_run *run, int block, unsigned units);
