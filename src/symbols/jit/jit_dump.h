// SPDX-License-Identifier: MIT
// jit_dump: the names of JIT-compiled code, from the jit-PID.dump that the compiler wrote for perf.
//
// The format is linux/tools/perf/Documentation/jitdump-specification.txt: a header, then records
// with a kind, a length and a time. This module uses the records of loaded and of moved code. Later
// records win. The file is hostile: a record that is longer than the rest of the file ends the
// reading, and the records before it count, as for a killed writer. Context: H.
#pragma once

#include "base/bytes.h"
#include "base/err.h"
#include "symbols/jit/jit_map.h"

// Add the names in `file` to `map`, which must not be sealed. ERR_CORRUPT if it is not a jitdump
// file.
enum err jit_dump_parse(struct bytes file, struct jit_map *map) MUST_USE;
