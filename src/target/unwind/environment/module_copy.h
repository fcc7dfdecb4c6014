// SPDX-License-Identifier: MIT
// module_copy: reads a module that may be unloaded at any moment, to find the tables of a pc.
//
// A guessed return address (by a frame pointer that may be invalid) may be in a module that another
// thread is closing. A module on the stack stays loaded; this one may not be on it. So nothing of
// it is read in place: the kernel copies the requested bytes, and reports which are missing. The
// copies are in memory as large as the module, at the same offsets; the rest of that memory stays
// untouched.
//
// Owns: that memory. Context: T; makes a few system calls for each function that is looked up.
// Failure: where no system call may be made, or not this one, nothing is found.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "target/unwind/cfi/eh_frame.h"
#include "target/unwind/environment/module_table.h"

struct module_copy {
    struct eh_table table; // fetches the requested bytes
    struct module_span span;
};

// Begin a copy of a module that module_table_find_unread() found. False if no copy is possible.
bool module_copy_open(const struct module_span *span, struct module_copy *out);

// Find the unwind tables of a module that module_table_find_unread() found, in a copy unless they
// are not in the module. The table is to be closed. False if no copy is possible.
bool module_copy_unwind(const struct module_span *span, struct eh_table *out);

// Complete `copy->span`, with its headers and path in the copy, and find the build-id, empty if
// there is none. False if the module was unloaded.
bool module_copy_describe(struct module_copy *copy, struct bytes *build_id);

// Give back the memory of a copy, by its table. A table that fetches nothing has no such memory.
void module_copy_close(const struct eh_table *table);
