// SPDX-License-Identifier: MIT
// recording_random: recordings for tests and measurements, made from a seed, and their comparison.
//
// recording_random_realistic draws what a real run looks like (deep stacks that share their outer
// frames, most stacks with few allocations and few with very many, most blocks freed within their
// slice); every invariant holds. recording_random_wild fills every field of every table with
// numbers of any size, so that no encoding's corner stays dry; only indices into the strings are
// valid. Context: H; not part of the program.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "recording/format/tables.h"

struct random_source {
    uint64_t state;
};

// xorshift64*: the same numbers everywhere.
uint64_t random_next(struct random_source *source);
// Below `bound`; 0 if that is 0.
uint64_t random_below(struct random_source *source, uint64_t bound);

// `out` owns its arrays. `nodes` is about the number of stack nodes; the rest follows from it.
enum err recording_random_realistic(uint64_t seed, size_t nodes, struct recording *out) MUST_USE;

// `entries`: in each table at most.
enum err recording_random_wild(uint64_t seed, size_t entries, struct recording *out) MUST_USE;

// The name of the first table (or "strings") in which they differ, NULL if they are equal in all
// that a file keeps. Sets *entry to the first differing entry.
const char *
recording_difference(const struct recording *a, const struct recording *b, size_t *entry);
