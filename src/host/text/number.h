// SPDX-License-Identifier: MIT
// number: reads whole numbers from text.
//
// No other file does: strtoul accepts signs, blanks and an empty text, and reports through errno.
//
// Numbers have no sign and no blanks. One that does not fit becomes UINT64_MAX. Context: H; pure.
// Trust: texts are hostile.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Read the digits at `*at` in `base` (8, 10 or 16), and move `*at` behind them. False, and nothing
// changes, if there are none.
bool number_take(const char **at, unsigned base, uint64_t *out);

// Read the text, which is a decimal number of at most `most` and nothing else.
bool number_parse(const char *text, uint64_t most, uint64_t *out);

// Return the decimal number behind spaces and tabs, 0 if there is none: a field of a file of /proc.
uint64_t number_field(const char *text);
