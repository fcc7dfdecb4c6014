// SPDX-License-Identifier: MIT
// symbol_table: the functions in a symbol table of an ELF file, one after another.
//
// Undefined symbols, symbols without a name and other kinds than functions are left out. The table
// is hostile: every entry is checked. Borrows from the Elf handle. Context: H.
#pragma once

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct symbol_table {
    Elf *elf;           // borrowed
    Elf_Data *data;     // borrowed
    size_t names_index; // section with the names
    struct bytes names; // that section, if it ends with a zero byte; borrowed
    size_t count;
    size_t next;
};

struct function_symbol {
    const char *name; // borrowed; may end with @VERSION
    GElf_Sym symbol;  // type STT_FUNC or STT_GNU_IFUNC
};

// Find the table of `type`, SHT_SYMTAB or SHT_DYNSYM. False if the file has none; `table` is then
// empty.
bool symbol_table_open(struct symbol_table *table, Elf *elf, uint32_t type);

// Return the name of a symbol of the table; NULL if it has none.
const char *symbol_table_name(const struct symbol_table *table, const GElf_Sym *symbol);

// Whether a symbol of the table of `type` may have that name. Reads only the names, and takes much
// less time than to compare them one by one.
bool symbol_table_may_name(Elf *elf, uint32_t type, const char *name);

// Find the defined symbol of that name, of any kind, in .dynsym or else in .symtab. False: there is
// none.
bool symbol_table_find(Elf *elf, const char *name, GElf_Sym *out);

// Return the next function in `out`; false at the end.
bool symbol_table_next(struct symbol_table *table, struct function_symbol *out);
