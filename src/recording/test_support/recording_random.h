// SPDX-License-Identifier: MIT
// recording_random: recordings for tests and measurements, made from a seed, and their comparison.
//
// recording_random_realistic resembles a real run: deep stacks share their outer frames, most
// stacks have few allocations and few have very many, most blocks are freed within their slice.
// Every invariant holds. recording_random_wild fills every field of every table with numbers of any
// size, to reach every corner of every encoding; only indices into the strings are valid.
// Context: H; tests only.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "recording/format/tables.h"

struct random_source {
    uint64_t state;
};

// Return the next number of xorshift64*, the same on every machine.
uint64_t random_next(struct random_source *source);
// Return a number below `bound`; 0 if `bound` is 0.
uint64_t random_below(struct random_source *source, uint64_t bound);

// Make a realistic recording. `out` owns its arrays. `nodes` is the approximate number of stack
// nodes and determines the other counts.
enum err recording_random_realistic(uint64_t seed, size_t nodes, struct recording *out) MUST_USE;

// Make a wild recording with at most `entries` entries in each table.
enum err recording_random_wild(uint64_t seed, size_t entries, struct recording *out) MUST_USE;

// Return the name of the first table (or "strings") that differs in stored fields, NULL if all are
// equal. Set *entry to the first differing entry.
const char *
recording_difference(const struct recording *a, const struct recording *b, size_t *entry);
