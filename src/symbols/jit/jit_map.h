// SPDX-License-Identifier: MIT
// jit_map: the names of JIT-compiled code by address, from the files that the compilers write:
// perf_map.h and jit_dump.h.
//
// Code may replace older code at the same place: the later piece wins. Owns the text. Context: H.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/text/strbuf.h"
#include "symbols/names/range_index.h"

struct jit_map {
    struct strbuf text;        // the names, each zero-terminated
    struct u64_vec names;      // offset of the name in text, by line
    struct range_index ranges; // value: index into names
    struct map_u64 latest;     // start of the code -> index of its name
};

// Add one piece of code. The latest one at an address wins. One that cannot be is left out.
enum err jit_map_add(struct jit_map *map, uint64_t begin, uint64_t size, struct bytes name)
    MUST_USE;

// Move the latest code at `old_begin` to `begin`, if there is some.
enum err jit_map_add_move(struct jit_map *map, uint64_t old_begin, uint64_t begin, uint64_t size)
    MUST_USE;

// End the adding. jit_map_find() needs a sealed map.
enum err jit_map_seal(struct jit_map *map) MUST_USE;

void jit_map_release(struct jit_map *map);

// Return the name of the code at `pc`, NULL if there is none. Borrowed.
const char *jit_map_find(const struct jit_map *map, uint64_t pc);
