// SPDX-License-Identifier: MIT
// column: one field of many entries, as bytes.
//
// Numbers are written as LEB128, after whichever of a few simple predictions makes them smallest:
// none, the entry before, another column of the same entry, or the entry's number. zstd comes after
// that and finds the repetitions; without the prediction it finds few (docs/design/recording.md has
// the figures). All arithmetic is modulo 2^64, so every value can be written in every encoding.
// Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "host/text/strbuf.h"

enum column_encoding {
    COLUMN_CONSTANT = 1,    // one number: the value of every entry
    COLUMN_VALUES = 2,      // a number for each entry
    COLUMN_DELTAS = 3,      // zigzag(value - value of the entry before); 0 before the first
    COLUMN_DIFFERENCES = 4, // zigzag(value of the reference column - value)
    COLUMN_POSITIONS = 5,   // zigzag(number of the entry in its table - value)
    COLUMN_TEXT = 6,        // bytes, not numbers
    COLUMN_SHARES = 7,      // zigzag(predicted bytes - value), see share.h
};

// What values are predicted from, besides each other.
struct column_context {
    const uint64_t *reference; // the reference column's values, or NULL
    const uint64_t *shares;    // predicted bytes, or NULL
    uint64_t first;            // number of the first entry in its table
};

// Appends `count` values (at least 1) to `out` in the encoding that needs the fewest bytes, and
// returns it.
enum column_encoding column_encode(const uint64_t *values,
                                   struct column_context context,
                                   size_t count,
                                   struct strbuf *out);

// Fills values[0..count) from exactly `data`. False if the bytes do not make `count` numbers, if
// some are left over, or if the encoding is unknown or lacks its reference.
bool column_decode(struct bytes data,
                   unsigned encoding,
                   struct column_context context,
                   size_t count,
                   uint64_t *values) MUST_USE;
