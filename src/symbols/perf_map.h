// SPDX-License-Identifier: MIT
// perf_map: the names of code that a JIT compiler made, from the /tmp/perf-PID.map that it wrote.
//
// Each line is "START SIZE NAME", the numbers in hexadecimal without a prefix (with one is
// accepted), the name up to the end of the line. Code may replace older code at the same place: the
// later line wins. Lines that do not parse are counted and left out. Owns the text. Context: H.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/strbuf.h"
#include "symbols/range_index.h"

struct perf_map {
    struct strbuf text;        // of the file, each name zero-terminated in place
    struct u64_vec names;      // offset of the name in text, by line
    struct range_index ranges; // value: index into names
    size_t bad_line_count;
};

// Reads the file. In a directory that everybody may write to, anybody may have put it there: unless
// it belongs to us or to root, or we are root and so no better than its owner, it is
// ERR_PERMISSION.
enum err perf_map_read(struct perf_map *map, const char *path, struct err_info *info) MUST_USE;

// Takes over `text` and leaves it zeroed, also on failure.
enum err perf_map_parse(struct perf_map *map, struct strbuf *text) MUST_USE;

void perf_map_release(struct perf_map *map);

// The name of the code at `pc`, NULL if there is none. Borrowed.
const char *perf_map_find(const struct perf_map *map, uint64_t pc);
