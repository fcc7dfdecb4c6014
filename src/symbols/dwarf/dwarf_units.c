// SPDX-License-Identifier: MIT
#include "symbols/dwarf/dwarf_units.h"

#include <dwarf.h>

#include "base/compiler.h"
#include "symbols/dwarf/dwarf_functions.h"

void dwarf_units_release(struct dwarf_units *units)
{
    dwarf_unit_vec_release(&units->units);
    range_index_release(&units->ranges);
}

// Add the ranges of a unit's functions, for a unit without ranges.
static enum err add_function_ranges(struct dwarf_units *units,
                                    struct dwarf_unit *unit,
                                    uint32_t unit_index,
                                    size_t max_ranges)
{
    CLEANUP(dwarf_functions_release) struct dwarf_functions functions = {0};
    size_t room = max_ranges - units->ranges.ranges.len;
    TRY(dwarf_functions_read(&functions, &unit->tree, false, room));
    for (size_t i = 0; i < functions.ranges.ranges.len; i++) {
        const struct range *range = &functions.ranges.ranges.items[i];
        TRY(range_index_add(&units->ranges, range->begin, range->end, unit_index));
    }
    return ERR_OK;
}

static enum err add_unit(struct dwarf_units *units, struct dwarf_unit *unit, size_t max_ranges)
{
    uint32_t unit_index = (uint32_t)units->units.len;
    size_t before = units->ranges.ranges.len;
    TRY(dwarf_add_ranges(&units->ranges, &unit->die, unit_index, max_ranges));
    if (units->ranges.ranges.len == before && before < max_ranges) {
        TRY(add_function_ranges(units, unit, unit_index, max_ranges));
    }
    if (units->ranges.ranges.len == before) {
        return ERR_OK; // only declarations and data
    }
    return dwarf_unit_vec_push(&units->units, *unit);
}

enum err dwarf_units_init(struct dwarf_units *units, Dwarf *dwarf, uint64_t file_bytes)
{
    CLEANUP(dwarf_units_release) struct dwarf_units fresh = {0};
    // Each range takes some bytes of the file, even compressed, unless units share a list.
    size_t max_ranges = file_bytes < UINT32_MAX ? (size_t)file_bytes : UINT32_MAX;
    Dwarf_CU *cu = NULL;
    uint8_t unit_type;
    struct dwarf_unit unit;
    Dwarf_Die split;
    while (dwarf_get_units(dwarf, cu, &cu, NULL, &unit_type, &unit.die, &split) == 0) {
        if (unit_type != DW_UT_compile && unit_type != DW_UT_skeleton) {
            continue;
        }
        bool is_split = unit_type == DW_UT_skeleton && split.addr != NULL;
        unit.tree = is_split ? split : unit.die;
        TRY(add_unit(&fresh, &unit, max_ranges));
    }
    TRY(range_index_seal(&fresh.ranges));
    *units = TAKE(fresh);
    return ERR_OK;
}
