// SPDX-License-Identifier: MIT
#include "symbols/dwarf/dwarf_functions.h"

#include <dwarf.h>

void dwarf_functions_release(struct dwarf_functions *functions)
{
    die_vec_release(&functions->dies);
    range_index_release(&functions->ranges);
    functions->is_deep = false;
}

enum err
dwarf_add_ranges(struct range_index *index, Dwarf_Die *die, uint32_t value, size_t max_ranges)
{
    Dwarf_Addr base = 0;
    ptrdiff_t offset = 0;
    while (index->ranges.len < max_ranges) {
        Dwarf_Addr begin;
        Dwarf_Addr end;
        offset = dwarf_ranges(die, offset, &base, &begin, &end);
        if (offset <= 0) {
            break; // the end, or damage: the ranges so far are good
        }
        // Linkers leave the ranges of discarded functions at 0, where no code is ever loaded.
        TRY(range_index_add(index, begin, begin != 0 ? end : 0, value));
    }
    return ERR_OK;
}

bool dwarf_step_over(Dwarf_Die *die, const Dwarf_Die *stack, size_t *depth)
{
    Dwarf_Die next;
    while (dwarf_siblingof(die, &next) != 0) {
        if (*depth == 0) {
            return false;
        }
        *die = stack[--*depth];
    }
    *die = next;
    return true;
}

static bool may_contain_functions(int tag, bool is_deep)
{
    switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_interface_type:
    case DW_TAG_enumeration_type:
        return true;
    case DW_TAG_subprogram:
    case DW_TAG_lexical_block:
        return is_deep;
    default:
        return false;
    }
}

// Add `die` if it is a function with code.
static enum err take_function(struct dwarf_functions *functions, Dwarf_Die *die, size_t max_ranges)
{
    size_t before = functions->ranges.ranges.len;
    if (dwarf_tag(die) != DW_TAG_subprogram || functions->dies.len >= UINT32_MAX) {
        return ERR_OK;
    }
    TRY(dwarf_add_ranges(&functions->ranges, die, (uint32_t)functions->dies.len, max_ranges));
    if (functions->ranges.ranges.len == before) {
        return ERR_OK; // a declaration, or the abstract form of an inlined function
    }
    return die_vec_push(&functions->dies, *die);
}

// Return the current DIE of the walk, NULL if the walk is in a loop.
static Dwarf_Die *arrive_at_die(struct dwarf_walk *walk)
{
    Dwarf_Off offset = dwarf_dieoffset(&walk->die);
    if (offset <= walk->last_offset) {
        return NULL;
    }
    walk->last_offset = offset;
    return &walk->die;
}

Dwarf_Die *dwarf_walk_begin(struct dwarf_walk *walk, Dwarf_Die *tree, bool is_deep)
{
    walk->depth = 0;
    walk->is_deep = is_deep;
    walk->last_offset = dwarf_dieoffset(tree);
    return dwarf_child(tree, &walk->die) == 0 ? arrive_at_die(walk) : NULL;
}

Dwarf_Die *dwarf_walk_next(struct dwarf_walk *walk)
{
    Dwarf_Die child;
    bool goes_down = walk->depth < DWARF_WALK_DEPTH &&
                     may_contain_functions(dwarf_tag(&walk->die), walk->is_deep) &&
                     dwarf_child(&walk->die, &child) == 0;
    if (goes_down) {
        walk->stack[walk->depth++] = walk->die;
        walk->die = child;
    } else if (!dwarf_step_over(&walk->die, walk->stack, &walk->depth)) {
        return NULL;
    }
    return arrive_at_die(walk);
}

enum err dwarf_functions_read(struct dwarf_functions *functions,
                              Dwarf_Die *tree,
                              bool is_deep,
                              size_t max_ranges)
{
    die_vec_clear(&functions->dies);
    range_index_clear(&functions->ranges);
    functions->is_deep = is_deep;
    struct dwarf_walk walk;
    for (Dwarf_Die *die = dwarf_walk_begin(&walk, tree, is_deep); die != NULL;
         die = dwarf_walk_next(&walk)) {
        TRY(take_function(functions, die, max_ranges));
    }
    return range_index_seal(&functions->ranges);
}

Dwarf_Die *dwarf_functions_find(struct dwarf_functions *functions, uint64_t address)
{
    struct range_search search = range_index_search(&functions->ranges, address);
    const struct range *range = range_index_next(&functions->ranges, &search, address);
    return range != NULL ? &functions->dies.items[range->value] : NULL;
}
