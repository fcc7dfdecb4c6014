// SPDX-License-Identifier: MIT
// code_index: the distinct functions and locations of a recording, and the chain of locations of
// each frame.
//
// A recording's frames are addresses with symbols. Queries are about functions ("how much by
// load()?") and locations ("by load() at app.c:12?"), which many addresses share:
//
//   frame 7 = libapp.so+0x4f2 --chain--> [ grow() vec.h:31, push() vec.h:77, load() app.c:12 ]
//                                          innermost, inlined  ...            the real function
//
//   function = (name, module). Unnamed code is called by its module and the start of its function,
//   or by its own address if that start is unknown: libx.so+0x4f2.
//   location = (function, file, line)
//
// A frame may have a second chain, for its stacks below a function of Python (wrappers.h). It has
// the same functions and places as the first, but all its locations are wrappers.
// Invariants: every chain has at least one location; all ids are below the counts of their tables;
// chain_first has one entry more than there are chains, in ascending order; the first chains are
// the chains of the frames.
// Context: H; one thread while it is built, any number of readers afterwards.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/string_table.h"
#include "host/containers/vec.h"

enum code_flags {
    CODE_WRAPPER = 1 << 0, // only passes allocations on, see wrappers.h
    CODE_UNKNOWN = 1 << 1, // has no name; it is called by a place in its module
    CODE_CUT = 1 << 2,     // replaces omitted frames: [truncated], [merged]
    CODE_LIBRARY = 1 << 3, // a wrapper because its source is another project's, see wrappers.h
};

struct code_function {
    uint32_t name;   // id in names
    uint32_t module; // index in the recording, or REC_NONE
    uint32_t flags;  // enum code_flags
};

struct code_location {
    uint32_t function;
    uint32_t file;   // id in names; 0 if unknown
    uint32_t line;   // 0 if unknown
    uint32_t flags;  // enum code_flags; function and file decide about wrappers
    uint64_t offset; // of the first frame seen here, in its module
};

// One function at one place, as the symbolizer returns it. Texts are borrowed, never NULL. A key is
// a number that only this text has, small enough for an array; 0: none.
struct code_position {
    const char *function;
    const char *file;
    uint32_t function_key;
    uint32_t file_key;
    uint32_t line;
};

DEFINE_VEC(code_function_vec, struct code_function);
DEFINE_VEC(code_location_vec, struct code_location);

struct code_index {
    struct string_table names;          // owned
    struct code_function_vec functions; // owned
    struct code_location_vec locations; // owned
    struct u32_vec chain;               // owned; location ids
    struct u32_vec chain_first;         // owned; by chain, where it begins
    struct u32_vec chain_of_node;       // owned; by node of the recording; empty: that of its frame
    struct map_u64 function_ids;        // owned, while building; (name, module)
    struct map_u64 place_ids;           // owned, while building; (file, line)
    struct map_u64 location_ids;        // owned, while building; (function, place)
    struct u32_vec file_flags;          // owned, while building; by name, of those of files
    struct u32_vec key_names;           // owned, while building; by key: its name + 1, or 0
};

// The locations of a frame, innermost first. Each but the last is inlined into the next.
struct code_chain {
    const uint32_t *locations;
    size_t count; // at least 1, for a frame of the recording
};

// Add the next frame. `positions` has `count` entries, innermost first; 0 if nothing is known.
// Positions without a name are called `unnamed`. `flags` are enum rec_frame_flags. Errors:
// ERR_NO_MEMORY, ERR_LIMIT.
enum err code_index_add_frame(struct code_index *index,
                              uint32_t module,
                              uint64_t offset,
                              uint32_t flags,
                              const struct code_position *positions,
                              size_t count,
                              const char *unnamed) MUST_USE;

// Free the tables that only building needs.
void code_index_finish(struct code_index *index);
void code_index_release(struct code_index *index);

// `chain` must be below the number of frames added, or from chain_of_node.
static inline struct code_chain code_index_chain(const struct code_index *index, uint32_t chain)
{
    uint32_t first = index->chain_first.items[chain];
    return (struct code_chain){.locations = index->chain.items + first,
                               .count = index->chain_first.items[chain + 1] - first};
}

// What code_index_chain takes for a node of the recording, whose frame is `frame`.
static inline uint32_t
code_index_chain_number(const struct code_index *index, uint32_t node, uint32_t frame)
{
    return index->chain_of_node.len == 0 ? frame : index->chain_of_node.items[node];
}

static inline struct code_chain
code_index_node_chain(const struct code_index *index, uint32_t node, uint32_t frame)
{
    return code_index_chain(index, code_index_chain_number(index, node, frame));
}
