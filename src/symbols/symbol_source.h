// SPDX-License-Identifier: MIT
// symbol_source: all that one module's names can come from, opened together.
//
// The module's file, its separate debug file, the DWARF in one of them and the symbol table of the
// fuller one; each may be missing, and `gap` says which matters. Owns all of it.
// Context: H; one thread.
#pragma once

#include <stdbool.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/text/strbuf.h"
#include "symbols/dwarf/dwarf_reader.h"
#include "symbols/elf/debug_search.h"
#include "symbols/elf/elf_file.h"
#include "symbols/elf/function_starts.h"
#include "symbols/elf/symtab.h"
#include "symbols/symbolizer.h"

struct symbol_source {
    struct elf_file module; // not open if it was not found or is another file than the recorded
    struct elf_file debug;  // not open if there is no separate file
    struct dwarf_reader dwarf;
    bool has_dwarf;
    struct symtab symtab;
    struct function_starts starts; // of the module's file
    enum symbol_gap gap;
    struct err_info trouble; // about the module's file, if that is the gap
};

// Of a module without DWARF, no symbol table is read if `needs_dwarf`. ERR_NO_MEMORY only:
// everything else is a gap.
enum err symbol_source_open(struct symbol_source *source,
                            const struct name_sources *sources,
                            const char *path,
                            struct bytes build_id,
                            bool needs_dwarf) MUST_USE;
void symbol_source_close(struct symbol_source *source);

// The file that the best names come from; "" if there is none. Borrowed.
const char *symbol_source_path(const struct symbol_source *source);

// Says in words what the gap is and what to do about it; both may be "". `path` is the module's.
void symbol_source_explain(const struct symbol_source *source,
                           const char *path,
                           struct strbuf *out_reason,
                           struct strbuf *out_advice);
