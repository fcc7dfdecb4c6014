// SPDX-License-Identifier: MIT
// option_values: parses the numbers that people type, with their units.
//
//   duration    10  2.5s  500ms  1m  1h  7d        seconds without a unit
//   size        4096  64KiB  1.5 MiB  2GB          bytes without a unit; K, M, G are binary, too
//   percent     5%  0.5%  5
//   range       64..4096  1KiB..  ..10ms  512      both ends included
// Each function returns false for an invalid text; nothing else can fail. Pure. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Parse a duration of at most a year.
bool duration_parse(const char *text, uint64_t *out_ms);

bool size_parse(const char *text, uint64_t *out_bytes);

// Parse a count. "1000000", "1,000,000" and "1_000_000" are equal.
bool count_parse(const char *text, uint64_t *out);

// Parse a percentage of at most 1,000,000 % into hundredths of a percent.
bool percent_parse(const char *text, uint64_t *out_hundredths);

struct value_range {
    uint64_t low;
    uint64_t high;
    bool is_set;
};

typedef bool value_parse(const char *text, uint64_t *out);

// Parse a range of values that `parse` reads. Return false for an empty range too.
bool range_parse(const char *text, value_parse *parse, struct value_range *out);
