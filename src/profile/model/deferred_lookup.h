// SPDX-License-Identifier: MIT
// deferred_lookup: looks up the names of frames module by module, in steps.
//
// The frames may be those of a recording that grows: each step names what earlier steps did not.
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

// The lookup's result for a module. Ids are in deferred_symbols.texts.
struct late_module {
    bool is_known;  // it was looked up; else the recorded names are valid
    bool is_better; // names from debug information were found
    enum symbol_gap gap;
    uint32_t source;
    uint32_t advice;
};

DEFINE_VEC(late_module_vec, struct late_module);

struct deferred_symbols {
    struct string_table texts;      // owned
    struct symbol_frame_vec frames; // owned
    struct symbol_chain_vec chains; // owned; by frame of the recording; empty if none was needed
    struct late_module_vec modules; // owned; by module; empty if none was needed
};

void deferred_symbols_release(struct deferred_symbols *symbols);

// The frames to name. Tables may grow between two steps; existing entries must not change.
struct late_code {
    const struct late_code_module *modules;
    size_t module_count;
    const struct rec_frame *frames;
    size_t frame_count;
};

struct late_code_module {
    const char *path;
    const char *build_id; // hexadecimal; anything else counts as missing
    bool is_named; // its frames have names, but none from debug information; those are wanted
    bool is_left_alone;
};

DEFINE_VEC(late_code_module_vec, struct late_code_module);

struct deferred_lookup_options {
    struct name_sources sources;  // in addition to the standard places
    uint64_t keep_bytes;          // of files that stay open between two steps
    bool (*go_on)(void *context); // false ends the step (ERR_CANCELLED); may be NULL
    void *context;
};

struct deferred_lookup;

enum err deferred_lookup_new(const struct deferred_lookup_options *options,
                             struct deferred_lookup **out) MUST_USE;
void deferred_lookup_free(struct deferred_lookup *lookup); // accepts NULL

// Name the frames that earlier steps did not name. `progress` may be NULL. ERR_CANCELLED leaves the
// rest to the next step.
enum err deferred_lookup_step(struct deferred_lookup *lookup,
                              const struct late_code *code,
                              struct progress *progress) MUST_USE;

// Move the names, by `code` of the last step, to the caller. Add them to the cache of the sources,
// if they have one. End the lookup.
void deferred_lookup_take(struct deferred_lookup *lookup, struct deferred_symbols *out);
