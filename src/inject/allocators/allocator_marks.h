// SPDX-License-Identifier: MIT
// allocator_marks: texts in a file that only an allocator prints, for files without symbols.
//
// The segments with texts are read a piece at a time, at most 64 MiB of each. Context: H.
#pragma once

#include "symbols/elf/elf_file.h"

// Return the allocator whose messages are in the file, NULL if there are none.
const char *allocator_marks_find(const struct elf_file *file);
