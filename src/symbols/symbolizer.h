// SPDX-License-Identifier: MIT
// symbolizer: find functions, files and lines for (module, address), with the inlined functions.
//
//   add modules -> resolve each module's addresses in one call -> read its coverage
//
// An address is one of the ELF file (pc - load bias). Most addresses of a stack are return
// addresses, which follow the call, so they are looked up one byte earlier, unless the query is
// exact. Sources, best first: DWARF in the module or in its separate debug file (inlined functions,
// files, lines), .symtab, .dynsym (functions only). A module whose file changed after recording
// gets no names, because they could be wrong; the coverage says why and what would help.
//
// Answers from DWARF are kept in a cache (name_cache.h), if there is one, and a module is opened
// only for answers that the cache lacks.
//
// Resolving a module opens its files and closes them at the end of the call, unless `keep_bytes`
// allows more, so the memory is for one module. Texts are added to the caller's string table, which
// stores equal names once. Hostile input: paths, ELF and DWARF; the headers of the parts describe
// their bounds. Context: H; one thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/containers/string_table.h"
#include "host/containers/vec.h"
#include "symbols/names/name_sources.h"
#include "symbols/names/symbol_answer.h"

struct symbolizer_options {
    struct string_table *strings; // borrowed for the symbolizer's life; all ids are from it
    struct name_sources sources;  // beside the standard places
    uint64_t keep_bytes; // modules stay open between calls while they take at most so much memory

    // Called now and then; may be NULL. Returns false to cancel (ERR_CANCELLED).
    bool (*progress)(void *context, const char *module_path, size_t done, size_t total);
    void *progress_context;
};

struct symbolizer;

// Make a symbolizer. The options are copied; the data they point to is borrowed. Free it with
// symbolizer_free.
enum err symbolizer_new(const struct symbolizer_options *options, struct symbolizer **out) MUST_USE;
void symbolizer_free(struct symbolizer *symbolizer);

// Add a module. Ids count from 0. If `build_id` is empty, any file at `path` is accepted.
enum err symbolizer_add_module(struct symbolizer *symbolizer,
                               const char *path,
                               struct bytes build_id,
                               uint32_t *out_module) MUST_USE;

// Use only debug information for the module from now on, and no symbol table, whose names the
// caller already has.
void symbolizer_want_debug_info(struct symbolizer *symbolizer, uint32_t module);

// Write out_chains[0..count) and append to out_frames. Queries in ascending order are fastest. A
// module without any information gives ERR_OK and empty chains. ERR_NO_MEMORY, ERR_LIMIT (string
// table or frames full), ERR_CANCELLED, ERR_INVALID (unknown module). A failure keeps what was
// appended to out_frames, and the chains of the queries answered before it.
enum err symbolizer_resolve(struct symbolizer *symbolizer,
                            uint32_t module,
                            const struct symbol_query *queries,
                            size_t count,
                            struct symbol_chain *out_chains,
                            struct symbol_frame_vec *out_frames) MUST_USE;

// Write answers from debug information that the cache lacks to the cache. The string table must
// still be the one of the options. Answers that cannot be written are looked up again next time.
void symbolizer_store(struct symbolizer *symbolizer);

// Return the coverage of all calls of symbolizer_resolve. Valid until the next call for this
// symbolizer; the module must exist.
struct symbol_coverage symbolizer_coverage(const struct symbolizer *symbolizer, uint32_t module);
