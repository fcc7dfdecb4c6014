// SPDX-License-Identifier: MIT
// symbol_source: all sources of one module's names, opened together.
//
// The sources are the module's file, its separate debug file, the DWARF in one of them and the
// symbol table of the fuller one. Each may be missing; `gap` names the most important missing one.
// Owns all of them. Context: H; one thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/text/strbuf.h"
#include "symbols/dwarf/dwarf_reader.h"
#include "symbols/elf/debug_search.h"
#include "symbols/elf/elf_file.h"
#include "symbols/elf/function_starts.h"
#include "symbols/elf/symtab.h"
#include "symbols/names/symbol_answer.h"

struct symbol_source {
    struct elf_file module; // not open if not found, or if it differs from the recorded file
    struct elf_file debug;  // not open if there is no separate file
    struct dwarf_reader dwarf;
    bool has_dwarf;
    struct symtab symtab;
    struct function_starts starts; // starts in the module's file
    enum symbol_gap gap;
    struct err_info trouble; // about the module's file, if that is the gap
};

// Open the sources. With `needs_dwarf`, do not read the symbol table of a module without DWARF.
// ERR_NO_MEMORY only: every other failure is a gap.
enum err symbol_source_open(struct symbol_source *source,
                            const struct name_sources *sources,
                            const char *path,
                            struct bytes build_id,
                            bool needs_dwarf) MUST_USE;
void symbol_source_close(struct symbol_source *source);

// Return about how much memory the open sources may take. Of DWARF that is the size of the files,
// because libdw may inflate and keep all of it; without DWARF only the tables of symbols and of
// unnamed functions are read, the latter when one is looked up.
uint64_t symbol_source_bytes(const struct symbol_source *source);

// Return the file with the best names, "" if there is none. Borrowed.
const char *symbol_source_path(const struct symbol_source *source);

// Append how to close the gap, if there is a way. `path` is the module's.
void symbol_source_advise(const struct symbol_source *source, const char *path, struct strbuf *out);
