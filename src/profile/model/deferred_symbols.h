// SPDX-License-Identifier: MIT
// deferred_symbols: names for frames of a recording that was written without any.
//
// A finished recording holds its symbols and is believed: it may come from another machine. A
// checkpoint has none yet, nor has a raw recording of another tool, and a file that says so
// (REC_UNKNOWN_NAMES) has some; what they lack is looked up when they are opened, from the files
// that the modules name. Of a finished one, the modules are looked up again that had no debug
// information, if the caller knows sources (name_sources.h): it may be there by now. There the
// build-id decides what belongs to a module, and one that has none is left alone. What is found
// takes the place of what the recording says; the recording itself is not changed.
// Context: H; one thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/string_table.h"
#include "host/containers/vec.h"
#include "host/os/progress.h"
#include "recording/format/tables.h"
#include "symbols/symbolizer.h"

DEFINE_VEC(symbol_chain_vec, struct symbol_chain);

// What was found out about a module. Ids in deferred_symbols.texts.
struct late_module {
    bool is_known;  // it was looked up; else the recording's word stands
    bool is_better; // names were found that come from debug information
    enum symbol_gap gap;
    uint32_t source;
    uint32_t advice;
};

DEFINE_VEC(late_module_vec, struct late_module);

struct deferred_symbols {
    struct string_table texts;      // owned
    struct symbol_frame_vec frames; // owned
    struct symbol_chain_vec chains; // owned; by frame of the recording. Empty: nothing was needed
    struct late_module_vec modules; // owned; by module. Empty: the same
};

void deferred_symbols_release(struct deferred_symbols *symbols);

// Code to be named. Tables grow from one step to the next; what was in them stays as it is.
struct late_code {
    const struct late_code_module *modules;
    size_t module_count;
    const struct rec_frame *frames;
    size_t frame_count;
};

struct late_code_module {
    const char *path;
    const char *build_id; // in hexadecimal; anything else counts as none
    bool is_named;        // its frames have names, but none from debug information, which is wanted
    bool is_left_alone;
};

DEFINE_VEC(late_code_module_vec, struct late_code_module);

struct deferred_lookup_options {
    struct name_sources sources;  // beside the standard places
    uint64_t keep_bytes;          // of files that stay open between two steps
    bool (*go_on)(void *context); // false: ends the step (ERR_CANCELLED). May be NULL
    void *context;
};

struct deferred_lookup;

enum err deferred_lookup_new(const struct deferred_lookup_options *options,
                             struct deferred_lookup **out) MUST_USE;
void deferred_lookup_free(struct deferred_lookup *lookup); // accepts NULL

// Names what no earlier step has named. `progress` may be NULL. ERR_CANCELLED: the rest is left for
// the next step.
enum err deferred_lookup_step(struct deferred_lookup *lookup,
                              const struct late_code *code,
                              struct progress *progress) MUST_USE;

// What was found, by `code` of the last step; it is the caller's from now on. The cache of the
// sources, if there is one, gets it, too. Ends the lookup.
void deferred_lookup_take(struct deferred_lookup *lookup, struct deferred_symbols *out);

// Looks up what `recording` lacks; nothing to do is success. `lookup`, if it is not NULL, has begun
// with the same modules and frames, or the first of them; else `sources`, which may be NULL, are
// asked, also for what is better than what the recording has. `progress` may be NULL. Modules that
// cannot be read are no error. ERR_NO_MEMORY, ERR_LIMIT.
enum err deferred_symbols_find(const struct recording *recording,
                               const struct name_sources *sources,
                               struct deferred_lookup *lookup,
                               struct progress *progress,
                               struct deferred_symbols *out) MUST_USE;
