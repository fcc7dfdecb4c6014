// SPDX-License-Identifier: MIT
// allocator_entries: finds the functions of a module that are the entries of an allocator.
//
// A table of names says what each function is: the malloc family, the operators new and delete, and
// jemalloc's *allocx. Names are tried as they are and with the prefixes in use (je_, _rjem_, mi_,
// tc_, __libc_, ...). The operators count only where the module also defines malloc, since those of
// a C++ runtime call the malloc of another module. The names come from .dynsym, from .symtab, and
// from the .symtab of a separate debug file. Of several names for one address the first in the
// order of the table stays. Several allocators in one module are possible, each with its prefix.
//
// Owns the vector and its names. Context: H; one thread (libelf).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "session/agent_hooks.h"
#include "symbols/elf/elf_file.h"
#include "symbols/names/name_sources.h"

// A function to patch. Addresses are those of the file (st_value), without the load bias.
struct allocator_entry {
    uint64_t addr;
    uint64_t size_bytes; // 0: unknown
    enum agent_hook hook;
    int32_t nothrow; // AGENT_ALLOCATES_OR_THROWS: index of the entry of the nothrow form
    char *name;      // owned
};
DEFINE_VEC(allocator_entry_vec, struct allocator_entry);

// Names that the user gives, of all modules: `--allocator malloc=my_alloc,free=my_free`.
struct allocator_name {
    enum agent_hook hook;
    char *name; // owned
};
DEFINE_VEC(allocator_name_vec, struct allocator_name);

void allocator_entries_release(struct allocator_entry_vec *entries);
void allocator_names_release(struct allocator_name_vec *names);

// Parse the option's value and append its names. ERR_INVALID with a sentence that lists the kinds.
enum err allocator_names_parse(const char *text,
                               struct allocator_name_vec *names,
                               struct err_info *info) MUST_USE;

// Append the entries of an open module. `sources` says where a separate debug file may be; NULL:
// the file alone. `out_has_symbols` is false if the module has no function names but those that it
// exports, so that an allocator in it could not be found: say so with its build-id. A module
// without an allocator has no entries. ERR_NO_MEMORY.
enum err allocator_entries_find(const struct elf_file *module,
                                const struct name_sources *sources,
                                const char *path,
                                const struct allocator_name_vec *names,
                                struct allocator_entry_vec *entries,
                                bool *out_has_symbols) MUST_USE;
