// SPDX-License-Identifier: MIT
// namespace_hooks: records the allocators of linker namespaces that dlmopen makes.
//
// The libraries of a namespace call its own copy of libc, so none of our exports. When the real
// dlmopen has returned, those of their function pointers that contain exactly a function of the
// namespace's allocator are set to hooks (redirected_slots.h). Each namespace has hooks of its own,
// which call its allocator. dlmopen itself behaves as before: nothing of ours is in the namespace.
//
//   namespace_open("plugin.so") -> dlmopen -> list its modules -> the first definition of malloc
//       -> a free row of 15 -> row.malloc = that one; slots: that one -> the row's hook
//
// Not recorded: what constructors do while dlmopen runs, libraries that the namespace opens itself,
// addresses from dlsym, an allocator that has operators new of its own. A loss counter says so for
// each namespace; unknown_frees counts their blocks that are freed later.
//
// Context: T, inside the program's call of dlmopen. errno is kept. Owns: the rows. A row is free
// again when its allocator was unloaded. Failure: the namespace is not recorded, and counted.
#pragma once

#include "base/compiler.h"

// Open `file` as dlmopen(3) does, by a call from here (deep_bind_may_call), in the namespace whose
// number is `namespace`, and record its allocator.
void *namespace_open(long namespace, const char *file, int mode);
