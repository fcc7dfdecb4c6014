// SPDX-License-Identifier: MIT
// dwarf_functions: the functions of one compilation unit by address.
//
// A walk over the DIE tree collects every DW_TAG_subprogram that has addresses, with all of its
// ranges (functions have several: hot, cold). It goes down through whatever may contain functions:
// namespaces and modules (all of Rust), classes; and, in a second walk that is only done when the
// first found nothing for an address, through functions and blocks (GNU C's nested functions). The
// walk is a loop with a stack of its own, of bounded depth, and DIE offsets must grow from step to
// step, so that no tree, however crooked, takes longer than the section is long.
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
    bool is_deep;              // with functions inside functions
};

void dwarf_functions_release(struct dwarf_functions *functions);

// Replaces the content by the functions below `tree`. At most `max_ranges` ranges are taken.
enum err dwarf_functions_read(struct dwarf_functions *functions,
                              Dwarf_Die *tree,
                              bool is_deep,
                              size_t max_ranges) MUST_USE;

// Adds all ranges of `die` to `index`, as long as it holds fewer than `max_ranges`.
enum err
dwarf_add_ranges(struct range_index *index, Dwarf_Die *die, uint32_t value, size_t max_ranges)
    MUST_USE;

// A walk in preorder over the DIEs below a tree that are functions or may contain some. With
// `is_deep` it goes down into functions, too. It ends, whatever the input: depth is bounded, and
// offsets grow.
enum {
    DWARF_WALK_DEPTH =
        256 // namespaces and classes nest a few deep; blocks in functions some dozens
};

struct dwarf_walk {
    Dwarf_Die stack[DWARF_WALK_DEPTH]; // on the way down to `die`
    size_t depth;
    Dwarf_Die die;
    Dwarf_Off last_offset;
    bool is_deep;
};

// The first DIE, and the one after that; NULL: there are no more. Borrowed from the walk.
Dwarf_Die *dwarf_walk_begin(struct dwarf_walk *walk, Dwarf_Die *tree, bool is_deep);
Dwarf_Die *dwarf_walk_next(struct dwarf_walk *walk);

// For walks with a stack of their own: moves `die` to what follows it and all below it, which is
// its next sibling or that of the innermost of stack[0..depth) that has one. False at the end.
bool dwarf_step_over(Dwarf_Die *die, const Dwarf_Die *stack, size_t *depth);

// The function whose code is at `address`; NULL if there is none. Borrowed.
Dwarf_Die *dwarf_functions_find(struct dwarf_functions *functions, uint64_t address);
