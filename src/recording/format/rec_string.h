// SPDX-License-Identifier: MIT
// rec_string: the texts of a recording, and ids of its entries. Context: H.
#pragma once

#include <stdint.h>

#define REC_NONE UINT32_MAX

// Index into strings; 0 is the empty string. A string may be invalid UTF-8: paths and names are
// bytes.
typedef uint32_t rec_string; // the one typedef: an id is not a count

struct rec_strings {
    const char *data;        // all strings, each ended by a zero byte
    const uint64_t *offsets; // where each string begins in data
    uint32_t count;          // at least 1
    uint64_t data_bytes;
};
