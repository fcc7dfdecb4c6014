// SPDX-License-Identifier: MIT
// definitions: finds the module that defines a function, without the loader.
//
// dlsym() and its kin take the loader's lock, allocate, and call gettext for error texts. Inside a
// hook, which may run under any lock of libc's, each of these can deadlock. So this reads the
// symbol tables of the modules directly (dynamic_section.h). It searches only modules that were
// loaded when the process started: they are never unloaded, so any thread may read their part of
// the loader's list at any moment, without a lock. The first call determines where that part ends.
// It comes from the first hook or the constructor, before the program can have loaded or unloaded
// anything by dlopen or dlclose, which are hooked too.
//
// Context: T, anywhere. Owns: the end of that part.
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

// A definition. Address 0: there is none.
struct definition {
    const struct link_map *module;
    uint64_t address;
};

// Find the first definition of `name` in the order in which the loader searches, ours included, as
// dlsym() with RTLD_DEFAULT; and the first one behind ours, as with RTLD_NEXT.
struct definition definition_first(const char *name);
struct definition definition_next(const char *name);

// Find the first definition of a variable in the same way.
struct definition definition_first_variable(const char *name);

// Store the next definition of `name` in the function pointer at `place`; leave it unchanged if
// there is none. Returns the module that defines it, or NULL.
const struct link_map *definition_next_into(const char *name, void *place);

// Whether the definition is in our own library.
bool definition_is_ours(struct definition definition);

// Return the module that contains `address`, which must stay loaded; NULL if there is none or libc
// cannot answer (glibc before 2.35). Uses _dl_find_object, which takes no lock.
const struct link_map *definition_module_at(uint64_t address);

// Find the definition of `name` that the code at `address` would call without us: in its own
// module, or in a module that its references lead to.
struct definition definition_for(uint64_t address, const char *name);
