// SPDX-License-Identifier: MIT
// jit_dump: the names of code that a JIT compiler made, from the jit-PID.dump that it wrote for
// perf.
//
// The format is linux/tools/perf/Documentation/jitdump-specification.txt: a header, then records of
// a kind, a length and a time; code that was loaded and code that was moved count here. Later
// records win. The file is a stranger's: a record that is longer than what is left ends the
// reading, and what was read until then counts, as of a writer that was killed. Context: H.
#pragma once

#include "base/bytes.h"
#include "base/err.h"
#include "symbols/jit/perf_map.h"

// Adds what `file` says to `map`, which must not be sealed. ERR_CORRUPT: it is no such file.
enum err jit_dump_parse(struct bytes file, struct perf_map *map) MUST_USE;
