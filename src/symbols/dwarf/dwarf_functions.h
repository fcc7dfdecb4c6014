// SPDX-License-Identifier: MIT
// dwarf_functions: the functions of one compilation unit by address.
//
// A walk over the DIE tree collects every DW_TAG_subprogram that has addresses, with all of its
// ranges (a function may have several: hot, cold). The walk enters DIEs that may contain functions:
// namespaces, modules (all of Rust) and classes. If this finds no function for an address, a second
// walk also enters functions and blocks (GNU C's nested functions). The walk is a loop with its own
// stack of bounded depth. DIE offsets must grow from step to step, so a malformed tree takes no
// longer than the length of the section.
// Context: H.
#pragma once

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "symbols/names/range_index.h"

DEFINE_VEC(die_vec, Dwarf_Die);

struct dwarf_functions {
    struct die_vec dies;
    struct range_index ranges; // value: index into dies
    bool is_deep;              // nested functions are included
};

void dwarf_functions_release(struct dwarf_functions *functions);

// Replace the content by the functions below `tree`, with at most `max_ranges` ranges.
enum err dwarf_functions_read(struct dwarf_functions *functions,
                              Dwarf_Die *tree,
                              bool is_deep,
                              size_t max_ranges) MUST_USE;

// Add all ranges of `die` to `index`, while it holds fewer than `max_ranges`.
enum err
dwarf_add_ranges(struct range_index *index, Dwarf_Die *die, uint32_t value, size_t max_ranges)
    MUST_USE;

// A walk in preorder over the DIEs below a tree that are functions or may contain functions. With
// `is_deep` it enters functions, too. It ends for every input: depth is bounded, and offsets grow.
enum {
    DWARF_WALK_DEPTH =
        256 // namespaces and classes nest a few deep; blocks in functions some dozens
};

struct dwarf_walk {
    Dwarf_Die stack[DWARF_WALK_DEPTH]; // the ancestors of `die`
    size_t depth;
    Dwarf_Die die;
    Dwarf_Off last_offset;
    bool is_deep;
};

// Return the first DIE, or the next one; NULL at the end. Borrowed from the walk.
Dwarf_Die *dwarf_walk_begin(struct dwarf_walk *walk, Dwarf_Die *tree, bool is_deep);
Dwarf_Die *dwarf_walk_next(struct dwarf_walk *walk);

// Move `die` past its descendants: to its next sibling, or to the next sibling of the innermost DIE
// of stack[0..depth) that has one. Return false at the end. For walks with their own stack.
bool dwarf_step_over(Dwarf_Die *die, const Dwarf_Die *stack, size_t *depth);

// Return the function whose code is at `address`, NULL if there is none. Borrowed.
Dwarf_Die *dwarf_functions_find(struct dwarf_functions *functions, uint64_t address);
