// SPDX-License-Identifier: MIT
// damage_report: what is missing from a recording that was read, judged and put into a sentence.
//
// The reader collects the facts; what they mean is decided here alone. Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/format/schema.h"
#include "recording/read/recording_reader.h"

struct damage_report {
    // The file.
    bool is_header_damaged;
    bool is_contents_damaged;
    bool has_footer;
    bool is_cut;             // it ends within a chunk
    uint64_t cut_bytes;      // of that chunk
    uint64_t damaged_bytes;  // that belong to no whole chunk, before that
    uint64_t damaged_offset; // of the first of them
    uint32_t newest_generation;
    // The snapshot that was taken.
    uint32_t generation;
    bool is_whole;       // all its chunks are there
    bool is_running;     // it was made while the recording went on
    bool is_pruned;      // the history of rows was left out, for it would need too much memory
    uint64_t most_bytes; // that tables may take
    bool is_limited;     // something was refused because it would need too much memory
    uint64_t damaged_chunks;
    uint64_t dropped;
    uint64_t repaired;
    uint64_t announced[REC_TABLE_COUNT];
    uint64_t counts[REC_TABLE_COUNT];
};

enum recording_condition damage_report_condition(const struct damage_report *s);

uint64_t damage_report_missing_entries(const struct damage_report *s);

// One sentence without a full stop, cut to `len`; "" if nothing is missing.
void damage_report_text(const struct damage_report *s, char *out, size_t len);
