// SPDX-License-Identifier: MIT
// symtab: function names by address from .symtab, or from .dynsym after strip.
//
// It holds the functions (and indirect functions) that the file defines. A symbol covers its size;
// a symbol without a size extends to the next symbol. Of several names for one address the public
// one wins: global before weak before local, then fewer leading underscores, then the shorter name,
// then alphabetical order. So malloc does not become __libc_malloc. Borrows the names from the Elf
// handle, which must outlive it. Context: H.
#pragma once

#include <libelf.h>
#include <stdint.h>

#include "base/err.h"
#include "symbols/names/range_index.h"

DEFINE_VEC(name_vec, const char *);

struct symtab {
    struct range_index ranges; // value: index into names
    struct name_vec names;
    uint64_t bytes; // of memory, with the sections that are read
};

// Read the fuller one of the tables of `elf`. A file without symbols gives an empty symtab.
enum err symtab_init(struct symtab *symtab, Elf *elf) MUST_USE;
void symtab_release(struct symtab *symtab);

// Return the mangled name of the function that holds `address`, NULL if there is none. Borrowed.
const char *symtab_find(const struct symtab *symtab, uint64_t address);
