// SPDX-License-Identifier: MIT
// recording_builder: make a recording that owns its arrays, one entry at a time.
//
// For importers of foreign formats and for tests. Equal strings, modules, nodes and rows are found
// again and not added twice; the builder appends everything else as given. The vectors are open: a
// caller pushes to them directly where no function fits.
//
//   struct recording_builder b = {0};  CLEANUP(recording_builder_release)
//   recording_builder_init(&b)         the root node exists, nothing else
//   ... recording_builder_process, _thread, _module, _frame, _node, _row ...
//   recording_builder_finish(&b, &r)   sorts, and moves everything into the recording
//
// Ids are indices into the tables. ERR_NO_MEMORY leaves the builder usable. ERR_LIMIT means that a
// table has 2^32 - 1 entries. Context: H; one thread at a time.
#pragma once

#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/string_table.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

#define X(type, name, count) DEFINE_VEC(name##_vec, struct type);
REC_TABLES(X)
#undef X

struct recording_builder {
    struct rec_meta meta;     // set by the caller
    struct rec_totals totals; // set by the caller or by recording_builder_sum
    uint64_t slice_ms;
    struct string_table strings;
#define X(type, name, count) struct name##_vec name;
    REC_TABLES(X)
#undef X
    struct map_u64 module_of; // path -> module
    struct map_u64 node_of;   // (parent, frame) -> node
    struct map_u64 row_of;    // (thread, node) -> row
};

// Initialise `b`, which must be zeroed, and add the root node.
enum err recording_builder_init(struct recording_builder *b) MUST_USE;

// Release and zero the builder. Accepts a zeroed, half-built or finished one.
void recording_builder_release(struct recording_builder *b);

// Find or add `text`; NULL means "".
enum err recording_builder_string(struct recording_builder *b, const char *text, rec_string *out_id)
    MUST_USE;

// Add a process of that executable. Its parent is REC_NONE, its exit status -1, its other fields 0.
enum err recording_builder_process(struct recording_builder *b,
                                   uint32_t pid,
                                   const char *executable,
                                   uint32_t *out_process) MUST_USE;

enum err recording_builder_thread(struct recording_builder *b,
                                  uint32_t process,
                                  uint32_t thread_id,
                                  const char *name,
                                  uint32_t *out_thread) MUST_USE;

// Find or add the module of that path; a new one has nothing else.
enum err recording_builder_module(struct recording_builder *b,
                                  const char *path,
                                  uint32_t *out_module) MUST_USE;
enum err recording_builder_module_of(struct recording_builder *b,
                                     rec_string path,
                                     uint32_t *out_module) MUST_USE;

// One function of a frame's inline chain.
struct builder_symbol {
    const char *function;
    const char *file;
    uint32_t line;
};

// Add a frame with its symbols, innermost first; none if symbol_count is 0.
enum err recording_builder_frame(struct recording_builder *b,
                                 uint32_t module,
                                 uint64_t offset,
                                 const struct builder_symbol *symbols,
                                 uint32_t symbol_count,
                                 uint32_t *out_frame) MUST_USE;

// Find or add the child of `parent` by `frame`; the root is node 0.
enum err recording_builder_node(struct recording_builder *b,
                                uint32_t parent,
                                uint32_t frame,
                                uint32_t *out_node) MUST_USE;

// Find or add the row of that thread and stack. A new row has costs of 0.
enum err recording_builder_row(struct recording_builder *b,
                               uint32_t thread,
                               uint32_t node,
                               uint32_t *out_row) MUST_USE;

// Set the totals that are sums over the rows: all but peak time, peak error, unknown frees and
// events.
void recording_builder_sum(struct recording_builder *b);

// Sort cells, buckets and cohorts, and move everything into `out`, which then owns it. The builder
// is empty afterwards. ERR_NO_MEMORY leaves everything in the builder.
enum err recording_builder_finish(struct recording_builder *b, struct recording *out) MUST_USE;
