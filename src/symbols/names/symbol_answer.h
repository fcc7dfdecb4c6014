// SPDX-License-Identifier: MIT
// symbol_answer: queries for names, and the answers to them.
//
// Ids are of the string table that the symbolizer was given. Context: H; plain data.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/containers/vec.h"

struct symbol_query {
    uint64_t address; // pc - load bias
    bool is_exact;    // address of the instruction (a fault, a function's entry), not a return
                      // address
};

struct symbol_frame {
    uint32_t function; // id in the string table, demangled; 0: unknown
    uint32_t file;     // id; 0: unknown
    uint32_t line;     // 0: unknown
    bool is_inlined;
};

DEFINE_VEC(symbol_frame_vec, struct symbol_frame);

// The answer to one query: frames.items[first .. first + count), innermost first; the last one is
// the physical function. count is 0 if nothing is known.
struct symbol_chain {
    uint32_t first;
    uint32_t count;
    uint64_t function_start; // start of a physical function without a name; 0: unknown, or it has a
                             // name
};

// Why a module's names are incomplete.
enum symbol_gap {
    SYMBOL_GAP_NONE,
    SYMBOL_GAP_NOT_RESOLVED,  // not tried yet
    SYMBOL_GAP_NO_FILE,       // the module has no file (vdso), or the file is unreadable
    SYMBOL_GAP_FILE_CHANGED,  // its build-id is not the recorded one
    SYMBOL_GAP_DAMAGED,       // ELF or DWARF is malformed
    SYMBOL_GAP_NO_DEBUG_INFO, // functions only
    SYMBOL_GAP_STRIPPED,      // exported functions only
};

struct symbol_coverage {
    enum symbol_gap gap;
    const char *source; // file with the names, "" if none. Borrowed
    const char *advice; // how to close the gap, one sentence; "" if there is none. Borrowed
};
