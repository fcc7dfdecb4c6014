// SPDX-License-Identifier: MIT
// program_note: reads the ELF notes in the image of the main program.
//
// It finds them by AT_PHDR, without the loader, in memory that the program's file has mapped.
// Context: T, at the process's start; no lock, no system call.
#pragma once

#include <stdbool.h>

// Whether Go's linker made the program (its build id is a note of owner "Go", type 4).
bool program_note_is_go(void);
