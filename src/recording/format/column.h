// SPDX-License-Identifier: MIT
// column: the encoding of one field of many entries.
//
// An encoder predicts each number from the entry before, from another column of the same entry or
// from the entry's index, or does not predict it, and writes the difference as LEB128. It chooses
// the encoding that gives the fewest bytes. zstd then compresses the repetitions; without a
// prediction it finds few: of a compiler run it packs the rows of cells to 20 KB by deltas and to
// 216 without, parents of nodes to 237 KB by positions and to 1995 without. All arithmetic is
// modulo 2^64, so every encoding can hold every value. Context: H; pure.
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
    COLUMN_POSITIONS = 5,   // zigzag(index of the entry in its table - value)
    COLUMN_TEXT = 6,        // bytes, not numbers
    COLUMN_SHARES = 7,      // zigzag(predicted bytes - value), see share.h
};

// The inputs of the predictions, besides the column's own values.
struct column_context {
    const uint64_t *reference; // the reference column's values, or NULL
    const uint64_t *shares;    // predicted bytes, or NULL
    uint64_t first;            // index of the first entry in its table
};

// Append `count` values (at least 1) to `out` in the encoding that needs the fewest bytes. Return
// that encoding.
enum column_encoding column_encode(const uint64_t *values,
                                   struct column_context context,
                                   size_t count,
                                   struct strbuf *out);

// Fill values[0..count) from exactly `data`. Return false if the bytes hold fewer or more than
// `count` numbers, or if the encoding is unknown or lacks its reference.
bool column_decode(struct bytes data,
                   unsigned encoding,
                   struct column_context context,
                   size_t count,
                   uint64_t *values) MUST_USE;
