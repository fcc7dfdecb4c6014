// SPDX-License-Identifier: MIT
// dynamic_section: the tables of a loaded module, as its dynamic section names them (System V ABI,
// "Dynamic Section"), and the functions that it defines.
//
// It only reads the module's own memory: no lock, no call. It trusts the loader and the module's
// file as the program does. Context: T, anywhere, while the module stays loaded: the caller is in
// it, or holds the loader's lock, or knows that it was loaded at the start.
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dynamic_section {
    uint64_t bias; // runtime address - address in the file
    const ElfW(Sym) * symbols;
    const char *names;
    const char *own_name;          // NULL: the module has none
    const uint32_t *gnu_hash;      // NULL: there is none
    const uint32_t *hash;          // of the System V ABI; NULL: there is none
    const ElfW(Versym) * versions; // NULL: no symbol has a version
    struct {
        const ElfW(Rela) * first;
        size_t bytes;
    } relocations[2]; // of data, of the procedure linkage table
};

// Read the tables that `entries` of a module with this bias name. False if it has no symbols.
bool dynamic_section_read(uint64_t bias, const ElfW(Dyn) * entries, struct dynamic_section *out);

// Return the address of the function `name` that the module defines and exports, in its default
// version; 0 if there is none. An address that an executable provides for a function of another
// module (a symbol with a value but without a section) is not a definition.
uint64_t dynamic_section_function(const struct dynamic_section *module, const char *name);

// Return the address of such a variable; 0 if there is none.
uint64_t dynamic_section_variable(const struct dynamic_section *module, const char *name);
