// SPDX-License-Identifier: MIT
// module_code: which functions of an allocator may have a hook that saves no registers.
//
// The code is that of the file, because the compiler's callers are compiled with it, and because in
// memory some functions may be patched already. Context: H; one thread (libelf).
#pragma once

#include "inject/allocators/allocator_scan.h"
#include "symbols/elf/elf_file.h"

// Set `changes_all` of the entries of an open module: inject/code/changed_registers.h. A user's
// function may have more arguments than such a hook passes on, and has it false.
void module_code_note(const struct elf_file *module, struct allocator_scan *scan);
