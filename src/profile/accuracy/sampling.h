// SPDX-License-Identifier: MIT
// sampling: whether a recording is exact, or an estimate because the program outran the recorder
// (`cairn record --overflow=sample`), and then what is known exactly all the same.
//
// Where it is sampled, all figures that are summed over blocks are estimates: of totals, stacks,
// times, everything. Exact are the numbers here. Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/text/strbuf.h"
#include "recording/format/tables.h"

struct sampling {
    bool is_sampled;
    bool is_for_memory; // because its live blocks were too many for the recorder, and nothing else
    uint64_t allocations; // that were made
    uint64_t allocated_bytes;
    uint64_t recorded_allocations; // of them; one in allocations / recorded_allocations
    uint64_t coarsest_weight;      // the most that a recorded one stands for
    uint64_t peak_standard_error_bytes;
};

struct sampling sampling_of(const struct recording *recording);

// "1 of 12.3": how many of all allocations were recorded. 32 bytes hold it.
struct sampling_rate {
    char text[32];
};
struct sampling_rate sampling_format_rate(const struct sampling *sampling);

// Appends " [estimates: 1 of 12.3 recorded]", to mark what is one; nothing if all is exact.
void sampling_append_mark(const struct recording *recording, struct strbuf *out);

// Appends a sentence without its end: what was sampled, and what is exact.
void sampling_append(const struct sampling *sampling, struct strbuf *out);
