// SPDX-License-Identifier: MIT
// damage_report: what is missing from a recording that was read, as a verdict and a sentence.
//
// The reader collects the facts; only this module interprets them. Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/format/schema.h"

enum recording_condition {
    RECORDING_COMPLETE,  // finished by its writer, and complete
    RECORDING_GROWING,   // a whole snapshot in a file without an end: still being written, or
                         // truncated after it
    RECORDING_TRUNCATED, // the file ends too early
    RECORDING_DAMAGED,   // a part of it is unreadable
    RECORDING_PRUNED,    // undamaged, but too large for the memory
};

struct damage_report {
    // About the file.
    bool is_header_damaged;
    bool is_contents_damaged;
    bool has_footer;
    bool is_cut;             // the file ends within a chunk
    uint64_t cut_bytes;      // bytes present of that chunk
    uint64_t damaged_bytes;  // bytes before it that belong to no whole chunk
    uint64_t damaged_offset; // file offset of the first damaged byte
    uint32_t newest_generation;
    // About the snapshot that was read.
    uint32_t generation;
    bool is_whole;        // every chunk is there
    bool is_running;      // made while the recording continued
    bool is_pruned;       // the history of rows was omitted, because it needs too much memory
    uint64_t most_bytes;  // limit for the memory of the tables
    bool is_memory_limit; // it is a share of the memory, else it follows from the file's size
    bool is_limited;      // something was refused, because it needs too much memory
    uint64_t damaged_chunks;
    uint64_t dropped;
    uint64_t repaired;
    uint64_t announced[REC_TABLE_COUNT];
    uint64_t counts[REC_TABLE_COUNT];
};

enum recording_condition damage_report_condition(const struct damage_report *s);

// Write one sentence without a full stop, truncated to `len`; "" if nothing is missing.
void damage_report_text(const struct damage_report *s, char *out, size_t len);
