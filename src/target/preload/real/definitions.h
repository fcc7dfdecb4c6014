// SPDX-License-Identifier: MIT
// definitions: which module defines a function, for those who may not ask the loader.
//
// dlsym() and its kin take the loader's lock, allocate, and ask gettext for the texts of their
// failures: inside a hook, which may run under any lock of libc's, each of these can wait for ever.
// So the symbol tables of the modules are read directly (dynamic_section.h). Only modules that were
// loaded when the process started are searched: they are never unloaded, so that their part of the
// loader's list may be read at any moment, by any thread, without a lock. The first call draws the
// line behind them; it comes from the first hook or the constructor, before the program can have
// loaded or unloaded anything by dlopen or dlclose, which are hooked too.
//
// Context: T, anywhere. Owns: where that line is.
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

// address 0: there is none.
struct definition {
    const struct link_map *module;
    uint64_t address;
};

// The first definition of `name` in the order in which the loader searches, ours included, and the
// first one behind ours: as dlsym() with RTLD_DEFAULT and RTLD_NEXT.
struct definition definition_first(const char *name);
struct definition definition_next(const char *name);

// Stores the next definition of `name` in the function pointer at `place`; if there is none, leaves
// it as it is. Returns the module that defines it, or NULL.
const struct link_map *definition_next_into(const char *name, void *place);

// Whether it is one of our own.
bool definition_is_ours(struct definition definition);

// The module that holds `address`, which must stay loaded; NULL if there is none or libc does not
// say (glibc before 2.35). By _dl_find_object, which takes no lock.
const struct link_map *definition_module_at(uint64_t address);

// The definition of `name` that the code at `address` would call without us: in its own module, or
// in one that its module's references lead to.
struct definition definition_for(uint64_t address, const char *name);
