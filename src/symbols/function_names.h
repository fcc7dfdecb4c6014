// SPDX-License-Identifier: MIT
// function_names: every function that a module's symbol table or debug information names.
//
// It serves questions about functions that may be on no stack, such as "does this function exist,
// or is the name a typo?". The walk reads the symbol table and, with debug information, the DIEs
// that may declare functions, because a function that is inlined everywhere has no symbol. It reads
// names only, unordered, and may give a name several times. Depth and progress are bounded as in
// dwarf_functions.h. Context: H; one thread.
#pragma once

#include "base/bytes.h"
#include "base/err.h"
#include "symbols/names/name_sources.h"
#include "symbols/symbolizer.h"

// Called with each demangled name, borrowed for the call. Returns false to stop.
typedef bool function_names_visit(void *context, const char *name);

// Visit all names. *gap is the reason why names may be missing, SYMBOL_GAP_NONE if none are. An
// unreadable module has no names, and a gap. ERR_NO_MEMORY only.
enum err function_names_walk(const struct name_sources *sources,
                             const char *path,
                             struct bytes build_id,
                             function_names_visit *visit,
                             void *context,
                             enum symbol_gap *gap) MUST_USE;
