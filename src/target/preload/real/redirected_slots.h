// SPDX-License-Identifier: MIT
// redirected_slots: sets function pointers of modules that dlopen or dlmopen has opened to other
// functions: the slots by which they call functions of other modules.
//
// A slot changes only if it contains exactly the function that is meant. So a module that has bound
// a name otherwise, or whose slots are bound at their first use, stays as it is.
//
// Context: T, under the loader's lock (dl_iterate_phdr), so that no other thread unloads a module
// meanwhile. Only modules that were opened with a handle are changed: the loader may still be
// writing to others. Failure: slots in memory that cannot be made writable stay.
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

// A function by name: slots that contain `from` are set to `to`. 0: no slot is.
struct redirected_function {
    const char *name;
    uint64_t from;
    uint64_t to;
};

#define OPENED_MODULES_MAX 128u // further ones are left out

// The module of a handle, and those that it needs, directly or indirectly, in the order in which
// the loader searches.
struct opened_modules {
    const struct link_map *items[OPENED_MODULES_MAX];
    size_t count;
};

// List them. Those that it needs are looked for from `first` on in the loader's list.
void opened_modules_list(const struct link_map *opened,
                         const struct link_map *first,
                         struct opened_modules *out);

// The part of a module that the loader has made read-only, in whole pages of this kernel; or
// nothing.
struct read_only_part {
    uint64_t start;
    uint64_t end;
    uint64_t page_bytes;
    bool is_opened; // some of it is writable now
};
struct read_only_part read_only_part_of(uint64_t bias, struct bytes headers, uint64_t page_bytes);

// Set the slots of a module, whose program headers are `headers`.
void redirected_slots_set(const struct link_map *module,
                          struct bytes headers,
                          const struct redirected_function *functions,
                          size_t function_count);
