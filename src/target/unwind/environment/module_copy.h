// SPDX-License-Identifier: MIT
// module_copy: what a module that may be unloaded at any moment says of itself and of a pc.
//
// A return address that was guessed, by a frame pointer that may be none, may lie in a module that
// another thread is just closing. A module on the stack stays loaded; such a one need not. So
// nothing of it is read in place: the kernel copies the bytes that are asked for, and says where
// there are none. The copies lie in memory as large as the module, at the same offsets, of which
// nothing else is touched.
//
// Owns: that memory. Context: T; makes system calls, a few for each function that is looked up.
// Failure: where no system call may be made, or not this one, nothing is found.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "target/unwind/cfi/eh_frame.h"
#include "target/unwind/environment/module_table.h"

struct module_copy {
    struct eh_table table; // fetches what it is asked for
    struct module_span span;
};

// Begins a copy of a module that module_table_find_unread() found. False if there is none to be
// had.
bool module_copy_open(const struct module_span *span, struct module_copy *out);

// Completes `copy->span`, with its headers and path in the copy, and finds the build-id; that is
// empty if there is none. False if the module is gone.
bool module_copy_describe(struct module_copy *copy, struct bytes *build_id);

// Gives back the memory of a copy, by its table. One that fetches nothing has none.
void module_copy_close(const struct eh_table *table);
