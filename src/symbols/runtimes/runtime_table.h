// SPDX-License-Identifier: MIT
// runtime_table: the runtimes that give out memory by an allocator of their own, how a module is
// recognised as one, what cairn does not see of its objects, and what shows them.
//
// Such an allocator takes large chunks from the kernel, so the objects in them call none of the
// functions that cairn hooks. Some runtimes have a variable that makes them call malloc for each
// object. Each sentence of cairn about this, and docs/user/runtimes.md, comes from this table.
//
// Context: H; no state. Trust: names and sections of a file are hostile; whatever it claims to be,
// only a sentence depends on it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "host/text/strbuf.h"
#include "symbols/elf/elf_file.h"

enum {
    RUNTIME_SECTIONS_MAX = 6,
    RUNTIME_LIBRARIES_MAX = 3,
};

struct runtime {
    const char *key;  // in recordings and in JSON
    const char *name; // for people
    const char *is;   // the same as the predicate of a sentence: "runs PHP"
    // The first one that a module has decides.
    const char *sections[RUNTIME_SECTIONS_MAX];   // of its file; ended by NULL
    const char *function;                         // that it defines for others; NULL: none
    const char *libraries[RUNTIME_LIBRARIES_MAX]; // beginnings of its file name; ended by NULL
    const char *hides;                            // a sentence: what cairn does not see
    const char *setting;     // with which cairn sees each object, as a shell takes it; NULL: none
    const char *environment; // the beginning of that variable in an environment
    uint32_t settings;       // the same as an enum runtime_setting (session/runtime_settings.h)
    const char *instead;     // a sentence: what shows the objects if no setting does
    const char *tried;       // the version that the row was tried with; NULL: none
    bool lacks_malloc;       // a static program of it has nothing that cairn could hook
};

// Return a row, NULL behind the last one.
const struct runtime *runtime_table_row(size_t index);

// Return the row with that key, NULL if there is none.
const struct runtime *runtime_table_named(const char *key);

// Return the runtime of a module, by the name of its file alone. NULL: none is known.
const struct runtime *runtime_table_of_library(struct bytes path);

// Return the runtime that an open module contains. NULL: none is known.
const struct runtime *runtime_table_of_module(const struct elf_file *module, const char *path);

// Whether that environment makes the runtime call malloc for each object. The texts are those of
// environ(7), each ended by a zero byte.
bool runtime_is_open(const struct runtime *runtime, struct bytes environment);

// Return the enum runtime_setting of the runtimes that it opens so.
uint32_t runtime_table_settings(struct bytes environment);

// Append the sentence without its subject: "runs PHP: its objects come from ...".
void runtime_explain(const struct runtime *runtime, struct strbuf *out);

// Append what a static program of a runtime that lacks malloc is, and what shows its objects:
// "static Go program; runtime/pprof writes ...".
void runtime_explain_static(const struct runtime *runtime, struct strbuf *out);
