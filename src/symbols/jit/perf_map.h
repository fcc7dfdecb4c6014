// SPDX-License-Identifier: MIT
// perf_map: the names of JIT-compiled code, from the /tmp/perf-PID.map that the compiler wrote, or
// from its jit-PID.dump (jit_dump.h).
//
// Each line is "START SIZE NAME". The numbers are hexadecimal, with or without a prefix; the name
// extends to the end of the line. Code may replace older code at the same place: the later line
// wins. Malformed lines are counted and skipped. Owns the text. Context: H.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/text/strbuf.h"
#include "symbols/names/range_index.h"

struct perf_map {
    struct strbuf text;        // the names, each zero-terminated
    struct u64_vec names;      // offset of the name in text, by line
    struct range_index ranges; // value: index into names
    struct map_u64 latest;     // start of the code -> index of its name
    size_t bad_line_count;
};

// Read the file, which must not be a symbolic link. In a directory that is writable for all users,
// another user may have created the file: ERR_PERMISSION unless this user or root owns it.
enum err perf_map_read(struct perf_map *map, const char *path, struct err_info *info) MUST_USE;

// Add the content of an open file of either form; the descriptor stays open. It must be a regular
// file of `owner` or root, changed at `since_s` or later: an older file belongs to an earlier
// process with the same pid.
enum err perf_map_add_file(struct perf_map *map,
                           int fd,
                           const char *path,
                           uint32_t owner,
                           int64_t since_s,
                           struct err_info *info) MUST_USE;

// Add one piece of code. The latest one at an address wins.
enum err perf_map_add(struct perf_map *map, uint64_t begin, uint64_t size, struct bytes name)
    MUST_USE;

// Move the latest code at `old_begin` to `begin`.
enum err perf_map_add_move(struct perf_map *map, uint64_t old_begin, uint64_t begin, uint64_t size)
    MUST_USE;

// End the adding. perf_map_find() needs a sealed map.
enum err perf_map_seal(struct perf_map *map) MUST_USE;

// Parse and seal. Takes over `text` and zeroes it, also on failure.
enum err perf_map_parse(struct perf_map *map, struct strbuf *text) MUST_USE;

void perf_map_release(struct perf_map *map);

// Return the name of the code at `pc`, NULL if there is none. Borrowed.
const char *perf_map_find(const struct perf_map *map, uint64_t pc);
