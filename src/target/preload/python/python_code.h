// SPDX-License-Identifier: MIT
// python_code: the pcs and names that represent Python's code in a stack.
//
// A code object has no address that could name it for long: it may be freed, and another one may
// get its memory. So each one that is seen gets a number, by its address and its contents (name,
// file, first line, table of lines), and its name and file are copied at once. Its frames have pcs
// that code cannot have, and its module contains these pcs alone:
//
//   pc = PYTHON_CODE_BASE + number * PYTHON_CODE_LINES + line + 1
//   module: [number * PYTHON_CODE_LINES, + PYTHON_CODE_LINES), path "[python] NAME:/FILE"
//
// So a frame's address in its module is its line, and its module's path has the rest
// (symbols/symbolizer.c). The process has one table of fixed size, which only grows; a forked child
// has its parent's. When it is full, all further code shares number 0. Two threads that meet the
// same new code both write its text; the texts are equal.
//
// Owns: the table, never freed. Context: T; no lock and no malloc, signal handlers included.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "target/preload/python/python_layout.h"
#include "target/unwind/unwind.h"

#define PYTHON_CODE_BASE  0x5079000000000000ULL // not canonical on any machine
#define PYTHON_CODE_LINES ((uint64_t)1 << 24)
#define PYTHON_CODES_MAX  65536u

// Map the table; false if there is no memory. Further calls change nothing.
bool python_code_prepare(void);

// Return the pc of a frame that runs the code object at `code` and has begun the instruction at
// `instruction`; 0 if the code object cannot be read.
uint64_t python_code_pc(const struct python_layout *layout, uint64_t code, uint64_t instruction);

// Find the module of such a pc; false for any other pc.
bool python_code_module(uint64_t pc, struct unwind_module *out);
