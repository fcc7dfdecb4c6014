// SPDX-License-Identifier: MIT
// perf_map: the names of code that a JIT compiler made, from the /tmp/perf-PID.map that it wrote,
// or from its jit-PID.dump (jit_dump.h).
//
// Each line is "START SIZE NAME", the numbers in hexadecimal without a prefix (with one is
// accepted), the name up to the end of the line. Code may replace older code at the same place: the
// later line wins. Lines that do not parse are counted and left out. Owns the text. Context: H.
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
    struct map_u64 latest;     // where code begins -> index of its name
    size_t bad_line_count;
};

// Reads the file, which is no symbolic link. In a directory that everybody may write to, anybody
// may have put it there: unless it belongs to us or to root it is ERR_PERMISSION.
enum err perf_map_read(struct perf_map *map, const char *path, struct err_info *info) MUST_USE;

// Adds the content of an open file, which stays open, of either form. It must be a regular file of
// `owner` or root that was changed at `since_s` or later: an older one is another process's of that
// number.
enum err perf_map_add_file(struct perf_map *map,
                           int fd,
                           const char *path,
                           uint32_t owner,
                           int64_t since_s,
                           struct err_info *info) MUST_USE;

// One piece of code. The latest that was added counts.
enum err perf_map_add(struct perf_map *map, uint64_t begin, uint64_t size, struct bytes name)
    MUST_USE;

// What was the last at `old_begin` lies at `begin` from now on.
enum err perf_map_add_move(struct perf_map *map, uint64_t old_begin, uint64_t begin, uint64_t size)
    MUST_USE;

// Ends the adding; perf_map_find() may follow.
enum err perf_map_seal(struct perf_map *map) MUST_USE;

// Takes over `text` and leaves it zeroed, also on failure. The map is sealed.
enum err perf_map_parse(struct perf_map *map, struct strbuf *text) MUST_USE;

void perf_map_release(struct perf_map *map);

// The name of the code at `pc`, NULL if there is none. Borrowed.
const char *perf_map_find(const struct perf_map *map, uint64_t pc);
