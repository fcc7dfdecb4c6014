// SPDX-License-Identifier: MIT
// sampling: whether a recording is exact or sampled, and which figures of a sampled one are exact.
//
// A recording is sampled with `cairn record --sample`, or if the program was faster than the
// recorder under `cairn record --overflow=sample`, or if it had more live blocks than the recorder
// has memory for. All figures summed over blocks are then estimates: totals, stacks, times. The
// fields below are exact. Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/text/format.h"
#include "host/text/strbuf.h"
#include "profile/model/cost.h"
#include "recording/format/tables.h"

struct sampling {
    bool is_sampled;
    bool is_for_memory;   // the only cause was too many live blocks for the recorder
    bool is_for_all;      // --sample
    uint64_t bytes;       // at least one block in so many bytes was recorded; 0: unknown
    uint64_t allocations; // all that were made
    uint64_t allocated_bytes;
    uint64_t recorded_allocations; // one in allocations / recorded_allocations
    uint64_t max_weight;           // the highest sampling weight
    uint64_t peak_standard_error_bytes;
};

struct sampling sampling_of(const struct recording *recording);

// Whether the errors of its estimates are known.
bool sampling_has_errors(const struct recording *recording);

// Return the sizes of the blocks in a bucket of sizes.
struct sampled_sizes sampled_sizes_of_bucket(const struct rec_bucket *bucket);

// Return the sizes of a row's allocations; all 0 if no errors are known.
struct sampled_sizes sampled_sizes_of_row(const struct recording *recording, uint32_t row);

// Return two standard errors of each of `costs`: the true value is within them in about 95 of
// 100 cases. Those of numbers of blocks of many sizes are wider, because small ones may be missing.
// All are 0 if sampling->bytes is. The error of the own peak is not known, and always 0. Source:
// docs/accuracy.md, Sampling by bytes.
struct costs sampling_errors(const struct sampling *sampling, const struct costs *costs);

// Return the same of a sum of so many bytes, whatever the sizes of the blocks.
uint64_t sampling_error_of_bytes(const struct sampling *sampling, uint64_t bytes);

// Return the most bytes that a call site without a chosen block has allocated, in at least 95 of
// 100 cases; 0 if no errors are known. Source: docs/accuracy.md, Error.
uint64_t sampling_most_unseen(const struct sampling *sampling);

// Return two standard errors of `part` of `costs` as a share of `whole` of them, 0 to 1. Both are
// numbers of blocks, and those of the part are among those of the whole.
double sampling_error_of_share(const struct sampling *sampling,
                               const struct costs *costs,
                               enum cost part,
                               enum cost whole);

// Return the variance of a sum over blocks whose size * size / length add up to 1; 0 if no errors
// are known.
double sampling_variance(const struct sampling *sampling);

// Return two standard errors of the difference of two estimates of independent recordings.
double sampling_change_error(double new_error, double old_error);

// Format an error as a share of its figure: " ±12%", at most " ±999%"; "" if the error is 0.
struct human sampling_format_error(uint64_t figure, uint64_t error);
struct human sampling_format_rate_error(double rate, double error);

// "1 of 12.3", or "none of the": how many of all allocations were recorded.
struct sampling_rate {
    char text[32];
};
struct sampling_rate sampling_format_rate(const struct sampling *sampling);

// Append " [estimates: 1 of 12.3 recorded]"; append nothing if the recording is exact.
void sampling_append_mark(const struct recording *recording, struct strbuf *out);

// Append a sentence without its full stop: what was sampled and what is exact.
void sampling_append(const struct sampling *sampling, struct strbuf *out);

// Append "In about 95 of 100 cases an estimate of 100 MiB is within ±5.3%" and what other errors
// mean, without a full stop; append nothing if sampling->bytes is 0.
void sampling_append_error(const struct sampling *sampling, struct strbuf *out);
