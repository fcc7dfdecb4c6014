// SPDX-License-Identifier: MIT
// symbolizer: from (module, address) to functions, files and lines, with the inlined functions.
//
//   add modules -> resolve each module's addresses in one call -> read its coverage
//
// An address is one of the ELF file's own (pc - load bias). Most addresses of a stack are return
// addresses: the call lies before them, so they are looked up one byte earlier, unless the query
// says that it is exact. Sources, best first: DWARF in the module or in its separate debug file
// (inlined functions, files, lines), .symtab, .dynsym (functions only). A module whose file has
// changed since gets no names at all rather than wrong ones, and the coverage says why and what
// would help.
//
// Answers that came from DWARF are kept in a cache (name_cache.h), if there is one, and a module is
// only opened for what the cache does not hold.
//
// Files are opened when a module is resolved and closed at the end of that call, so that memory is
// that of one module, unless `keep_bytes` says otherwise; the texts go to the caller's string
// table, in which equal names are one. Hostile input: paths, ELF and DWARF all come from strangers;
// see the headers of the parts for what bounds each. Context: H; one thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/containers/string_table.h"
#include "host/containers/vec.h"
#include "symbols/names/name_sources.h"

struct symbol_query {
    uint64_t address; // pc - load bias
    bool is_exact;    // the instruction itself (a fault, a function's entry), not a return address
};

struct symbol_frame {
    uint32_t function; // id in the string table, demangled; 0: unknown
    uint32_t file;     // id; 0: unknown
    uint32_t line;     // 0: unknown
    bool is_inlined;
};

DEFINE_VEC(symbol_frame_vec, struct symbol_frame);

// What is known of one query: frames.items[first .. first + count), innermost first; the last one
// is the physical function. count is 0 if nothing is known.
struct symbol_chain {
    uint32_t first;
    uint32_t count;
    uint64_t function_start; // of a physical function without a name; 0: unknown, or it has one
};

// Why a module's names are not as good as they could be.
enum symbol_gap {
    SYMBOL_GAP_NONE,
    SYMBOL_GAP_NOT_RESOLVED,  // not asked yet
    SYMBOL_GAP_NO_FILE,       // the module is no file (vdso) or the file cannot be read
    SYMBOL_GAP_FILE_CHANGED,  // its build-id is not the recorded one
    SYMBOL_GAP_DAMAGED,       // neither ELF nor DWARF make sense
    SYMBOL_GAP_NO_DEBUG_INFO, // functions only
    SYMBOL_GAP_STRIPPED,      // exported functions only
};

struct symbol_coverage {
    uint64_t asked;         // queries so far
    uint64_t with_function; // of these: the physical function is named
    uint64_t with_line;     // the innermost frame has file and line
    uint64_t with_inlined;  // at least one inlined frame
    enum symbol_gap gap;
    const char *source; // the file that the names come from, "" if none. Borrowed
    const char *reason; // the gap in words, one clause; "" if there is none. Borrowed
    const char *advice; // what would close it, one sentence; "" if nothing is needed. Borrowed
};

struct symbolizer_options {
    struct string_table *strings; // borrowed for the symbolizer's life; all ids are its
    struct name_sources sources;  // beside the standard places
    uint64_t keep_bytes; // modules stay open for the next call while their files have no more bytes

    // Called now and then; NULL: nobody watches. Returns false to give up (ERR_CANCELLED).
    bool (*progress)(void *context, const char *module_path, size_t done, size_t total);
    void *progress_context;
};

struct symbolizer;

// The options are copied; what they point to is borrowed. Free with symbolizer_free.
enum err symbolizer_new(const struct symbolizer_options *options, struct symbolizer **out) MUST_USE;
void symbolizer_free(struct symbolizer *symbolizer);

// Ids count from 0. `build_id` may be empty: then whatever file is at `path` is believed.
enum err symbolizer_add_module(struct symbolizer *symbolizer,
                               const char *path,
                               struct bytes build_id,
                               uint32_t *out_module) MUST_USE;

// From here on the module gets names from debug information alone, none from symbol tables: for who
// has those already.
void symbolizer_want_debug_info(struct symbolizer *symbolizer, uint32_t module);

// Reads a perf map (see perf_map.h) as a module whose addresses are plain pcs.
enum err symbolizer_add_perf_map(struct symbolizer *symbolizer,
                                 const char *path,
                                 uint32_t *out_module,
                                 struct err_info *info) MUST_USE;

// Writes out_chains[0..count) and appends to out_frames. Queries in ascending order are fastest. A
// module about which nothing can be found out is no error: its chains are empty.
// ERR_NO_MEMORY, ERR_LIMIT (string table or frames full), ERR_CANCELLED, ERR_INVALID (no such
// module); what was appended to out_frames until then stays there, and the chains of queries that
// had been answered have been written.
enum err symbolizer_resolve(struct symbolizer *symbolizer,
                            uint32_t module,
                            const struct symbol_query *queries,
                            size_t count,
                            struct symbol_chain *out_chains,
                            struct symbol_frame_vec *out_frames) MUST_USE;

// Writes what was found in debug information to the cache, as far as the cache did not hold it. The
// string table must still be the one of the options. What cannot be written is looked up again.
void symbolizer_store(struct symbolizer *symbolizer);

// Over all calls of resolve. Valid until the next call for this symbolizer; module must exist.
struct symbol_coverage symbolizer_coverage(const struct symbolizer *symbolizer, uint32_t module);
