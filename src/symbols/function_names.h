// SPDX-License-Identifier: MIT
// function_names: every function that a module's symbol table or debug information names.
//
// A question such as "is there a function called so, or was it mistyped?" is about functions that
// no stack need have. The walk goes over the symbol table and, where there is debug information,
// over the DIEs that may declare functions: those that were inlined everywhere have no symbol. Only
// names are read, in no order, and one may come several times. Depth and progress are bounded as in
// dwarf_functions.h. Context: H; one thread.
#pragma once

#include "base/bytes.h"
#include "base/err.h"
#include "symbols/names/name_sources.h"
#include "symbols/symbolizer.h"

// Called with each demangled name, which is borrowed for the call. Returns false to stop.
typedef bool function_names_visit(void *context, const char *name);

// *gap says why names may be missing: SYMBOL_GAP_NONE if none are. ERR_NO_MEMORY only: a module
// that cannot be read has no names, and a gap.
enum err function_names_walk(const struct name_sources *sources,
                             const char *path,
                             struct bytes build_id,
                             function_names_visit *visit,
                             void *context,
                             enum symbol_gap *gap) MUST_USE;
