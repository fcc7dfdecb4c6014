// SPDX-License-Identifier: MIT
// jit_map: the names of JIT-compiled code by address, from the files that the compilers write:
// perf_map.h and jit_dump.h.
//
// Code may replace older code at the same place, wholly or in part: the later piece wins. Sealing
// the map paints the pieces over one another, so that a search meets one piece, however often an
// address was used. A name is cut at SYMBOL_NAME_MAX bytes: the program wrote it, and it goes into
// the recording. Owns the text. Context: H.
#pragma once

#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/vec.h"
#include "host/text/strbuf.h"

struct jit_code {
    uint64_t begin;
    uint64_t end;  // exclusive
    uint64_t name; // offset in the texts
};

DEFINE_VEC(jit_code_vec, struct jit_code);

struct jit_map {
    struct strbuf text;        // the names, each zero-terminated
    struct jit_code_vec codes; // in the order of the files
    struct map_u64 latest;     // start of the code -> its index
    struct u64_vec borders;    // sorted; every begin and end once; empty until sealed
    struct u32_vec owners;     // owners[i]: index + 1 of the latest code from borders[i]; 0: none
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
