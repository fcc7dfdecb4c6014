// SPDX-License-Identifier: MIT
// program_note: what the notes in the image of the main program say of it.
//
// Found by AT_PHDR, without the loader. Notes lie in memory that the program has mapped as its file
// says. Context: T, at the process's start; no lock, no system call.
#pragma once

#include <stdbool.h>

// Whether Go's linker has made it (its build id is a note of owner "Go", type 4).
bool program_note_is_go(void);
