// SPDX-License-Identifier: MIT
// perf_map: the names of JIT-compiled code, from the /tmp/perf-PID.map that the compiler wrote, or
// from its jit-PID.dump (jit_dump.h).
//
// Each line is "START SIZE NAME". The numbers are hexadecimal, with or without a prefix; the name
// extends to the end of the line. Code may replace older code at the same place: the later line
// wins. Malformed lines are skipped. Context: H.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/text/strbuf.h"
#include "symbols/jit/jit_map.h"

// Add the content of an open file of either form; the descriptor stays open. It must be a regular
// file of `owner` or root, changed at `since_s` or later: an older file belongs to an earlier
// process with the same pid.
enum err perf_map_add_file(struct jit_map *map,
                           int fd,
                           const char *path,
                           uint32_t owner,
                           int64_t since_s,
                           struct err_info *info) MUST_USE;

// Add the lines of a text, and overwrite their ends. The caller seals the map.
enum err perf_map_add_lines(struct jit_map *map, struct strbuf *text) MUST_USE;
