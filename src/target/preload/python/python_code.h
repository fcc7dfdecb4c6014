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

// What tells a code object from another one at the same address.
struct python_code_facts {
    uint64_t code;
    uint64_t name;
    uint64_t name_hash;
    uint64_t file;
    uint64_t file_chars;
    uint64_t lines;
    uint64_t lines_bytes;
    uint64_t line_ends[2];
    uint64_t key; // of all the others
    uint32_t first_line;
};

// Read the facts about the code object at `code`; false if it cannot be read.
bool python_code_read(const struct python_layout *layout,
                      uint64_t code,
                      struct python_code_facts *out);

// Whether the code object that `facts` describe is still there. A running frame has an object at
// its address.
bool python_code_is(const struct python_layout *layout, const struct python_code_facts *facts);

// Return the pc of a frame that runs this code and has begun the instruction at `instruction`.
uint64_t python_code_pc(const struct python_layout *layout,
                        const struct python_code_facts *facts,
                        uint64_t instruction);

// Find the module of such a pc; false for any other pc.
bool python_code_module(uint64_t pc, struct unwind_module *out);
