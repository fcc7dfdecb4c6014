// SPDX-License-Identifier: MIT
#include "symbols/dwarf/dwarf_reader.h"

#include <dwarf.h>

#include "base/compiler.h"
#include "base/search.h"
#include "symbols/dwarf/dwarf_scopes.h"

// The units by address. libdw finds a unit by .debug_aranges, which clang does not write and other
// compilers write incompletely. So this collects the ranges of each unit's DIE, once for a file. A
// unit without ranges gets the ranges of its functions. Type units and partial units hold no code.
// Hostile input: the number of ranges is limited by the bytes of the file.

static void dwarf_units_release(struct dwarf_units *units)
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

// Read all units that libdw can read. Units after a damaged one are lost.
static enum err dwarf_units_init(struct dwarf_units *units, Dwarf *dwarf, uint64_t file_bytes)
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

// Files and lines of one compilation unit. libdw decodes a unit's line table once and keeps it
// until the handle is closed. Line 0 in a row means that the compiler moved or merged the code and
// no line is right. It stays 0, because the row before it mostly belongs to another inlined
// function.

// Return the address of a row; UINT64_MAX: unknown.
static Dwarf_Addr row_address(Dwarf_Lines *lines, size_t index)
{
    Dwarf_Addr address;
    return dwarf_lineaddr(dwarf_onesrcline(lines, index), &address) == 0 ? address : UINT64_MAX;
}

// Return the last row at or before `address`, `count` if there is none.
static size_t last_row_at(Dwarf_Lines *lines, size_t count, uint64_t address)
{
    const size_t above = FIRST_WHERE(at, count, row_address(lines, at) > address);
    return above > 0 ? above - 1 : count;
}

static bool is_end(Dwarf_Line *row)
{
    bool end = false;
    return dwarf_lineendsequence(row, &end) != 0 || end;
}

static uint32_t line_number(Dwarf_Line *row)
{
    int line = 0;
    return dwarf_lineno(row, &line) == 0 && line > 0 ? (uint32_t)line : 0;
}

// Return the place of `address` in the unit's line table; all fields are unknown if it has none.
static struct dwarf_place dwarf_lines_find(Dwarf_Die *unit_die, uint64_t address)
{
    struct dwarf_place place = {0};
    Dwarf_Lines *lines;
    size_t count;
    if (dwarf_getsrclines(unit_die, &lines, &count) != 0 || count == 0) {
        return place;
    }
    size_t at = last_row_at(lines, count, address);
    Dwarf_Line *row = at < count ? dwarf_onesrcline(lines, at) : NULL;
    if (row != NULL && !is_end(row)) { // else `address` is between two sequences
        place.file = dwarf_linesrc(row, NULL, NULL);
        place.line = line_number(row);
    }
    return place;
}

static bool number_of(Dwarf_Die *die, unsigned name, Dwarf_Word *out)
{
    Dwarf_Attribute attribute;
    return dwarf_formudata(dwarf_attr(die, name, &attribute), out) == 0;
}

// Return the place of the call to `inlined` (a DW_TAG_inlined_subroutine of the unit).
static struct dwarf_place dwarf_call_place(Dwarf_Die *unit_die, Dwarf_Die *inlined)
{
    struct dwarf_place place = {0};
    Dwarf_Word number;
    Dwarf_Files *files;
    size_t count;
    if (number_of(inlined, DW_AT_call_file, &number) &&
        dwarf_getsrcfiles(unit_die, &files, &count) == 0 && number < count) {
        place.file = dwarf_filesrc(files, number, NULL, NULL);
    }
    if (number_of(inlined, DW_AT_call_line, &number) && number <= UINT32_MAX) {
        place.line = (uint32_t)number;
    }
    return place;
}

// Rust reaches some dozens of inlined frames. A longer chain loses its innermost frames.
enum {
    MAX_INLINE_DEPTH = 1024,
    MAX_OPEN_BLOCKS = 256
};

// Limit for units that claim one address, since each needs a walk over the unit.
enum {
    MAX_CLAIMANTS = 8
};

enum err dwarf_reader_open(struct dwarf_reader *reader, struct elf_file *file)
{
    CLEANUP(dwarf_reader_close)
    struct dwarf_reader fresh = {.file_bytes = file->size_bytes, .current = SIZE_MAX};
    TRY(elf_file_inflate(file));
    fresh.dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
    if (fresh.dwarf == NULL || !elf_file_debug_strings_end(file)) {
        return ERR_CORRUPT;
    }
    TRY(dwarf_units_init(&fresh.units, fresh.dwarf, file->size_bytes));
    *reader = TAKE(fresh);
    return ERR_OK;
}

void dwarf_reader_close(struct dwarf_reader *reader)
{
    dwarf_units_release(&reader->units);
    dwarf_functions_release(&reader->functions);
    die_vec_release(&reader->inlined);
    (void)dwarf_end(reader->dwarf); // accepts NULL
    *reader = (struct dwarf_reader){0};
}

static bool is_block(int tag)
{
    return tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block ||
           tag == DW_TAG_with_stmt;
}

static bool states_addresses(Dwarf_Die *die)
{
    return dwarf_hasattr(die, DW_AT_low_pc) != 0 || dwarf_hasattr(die, DW_AT_ranges) != 0;
}

// The next move of the search after `die`.
enum step {
    STEP_OVER,
    STEP_INTO_HERE, // an inlined subroutine that holds the address: skip everything outside it
    STEP_INTO_MAYBE // a block that may hold one: search it, then continue after it
};

static enum step step_of(Dwarf_Die *die, uint64_t address)
{
    int tag = dwarf_tag(die);
    if (tag != DW_TAG_inlined_subroutine && !is_block(tag)) {
        return STEP_OVER;
    }
    const bool holds_address = dwarf_haspc(die, address) == 1;
    if (!is_block(tag)) {
        return holds_address ? STEP_INTO_HERE : STEP_OVER;
    }
    // With -flto, gcc's blocks overlap: the next one may hold the address, too.
    return holds_address || !states_addresses(die) ? STEP_INTO_MAYBE : STEP_OVER;
}

// Add `die` to the chain if it is an inlined subroutine that the search enters.
static enum err take_inlined(struct die_vec *chain, Dwarf_Die *die, enum step step)
{
    bool is_inlined = step == STEP_INTO_HERE && dwarf_tag(die) == DW_TAG_inlined_subroutine;
    return is_inlined && chain->len < MAX_INLINE_DEPTH ? die_vec_push(chain, *die) : ERR_OK;
}

// Fill reader->inlined with the inlined subroutines below `function` that hold the address,
// outermost first. Offsets must grow, as in dwarf_functions.
static enum err find_inlined(struct dwarf_reader *reader, Dwarf_Die *function, uint64_t address)
{
    Dwarf_Die stack[MAX_OPEN_BLOCKS]; // blocks after which the search continues
    size_t depth = 0;
    Dwarf_Off last_offset = dwarf_dieoffset(function);
    die_vec_clear(&reader->inlined);
    Dwarf_Die die;
    bool is_more = dwarf_child(function, &die) == 0;
    while (is_more && dwarf_dieoffset(&die) > last_offset) {
        last_offset = dwarf_dieoffset(&die);
        enum step step = step_of(&die, address);
        TRY(take_inlined(&reader->inlined, &die, step));
        Dwarf_Die child;
        bool has_child = step != STEP_OVER && dwarf_child(&die, &child) == 0;
        if (step == STEP_INTO_HERE) {
            depth = 0;
            is_more = has_child;
            die = has_child ? child : die;
        } else if (has_child && depth < MAX_OPEN_BLOCKS) {
            stack[depth++] = die;
            die = child;
        } else {
            is_more = dwarf_step_over(&die, stack, &depth);
        }
    }
    return ERR_OK;
}

static void name_function(Dwarf_Die *die, struct dwarf_frame *frame)
{
    Dwarf_Attribute attribute;
    const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));
    if (name == NULL) {
        name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute));
    }
    frame->is_linkage_name = name != NULL;
    if (name == NULL) {
        name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &attribute));
        frame->declaration = dwarf_declaration(die);
    }
    frame->name = name;
}

static const char *compilation_directory(struct dwarf_unit *unit)
{
    Dwarf_Attribute attribute;
    return dwarf_formstring(dwarf_attr(&unit->die, DW_AT_comp_dir, &attribute));
}

static enum err push_frame(struct dwarf_frame_vec *out,
                           struct dwarf_unit *unit,
                           Dwarf_Die *function,
                           struct dwarf_place place)
{
    struct dwarf_frame frame = {.place = place, .directory = compilation_directory(unit)};
    if (function != NULL) {
        name_function(function, &frame);
    }
    return dwarf_frame_vec_push(out, frame);
}

// Read the unit's functions into reader->functions, deep or not.
static enum err use_unit(struct dwarf_reader *reader, size_t unit_index, bool is_deep)
{
    if (reader->current == unit_index && reader->functions.is_deep >= is_deep) {
        return ERR_OK;
    }
    reader->current = SIZE_MAX;
    size_t max_ranges = reader->file_bytes < UINT32_MAX ? (size_t)reader->file_bytes : UINT32_MAX;
    TRY(dwarf_functions_read(&reader->functions, &reader->units.units.items[unit_index].tree,
                             is_deep, max_ranges));
    reader->current = unit_index;
    return ERR_OK;
}

static enum err find_function(struct dwarf_reader *reader,
                              size_t unit_index,
                              uint64_t address,
                              Dwarf_Die **out_function)
{
    TRY(use_unit(reader, unit_index, false));
    Dwarf_Die *function = dwarf_functions_find(&reader->functions, address);
    if (function == NULL) {
        TRY(use_unit(reader, unit_index, true));
        function = dwarf_functions_find(&reader->functions, address);
    }
    *out_function = function;
    return ERR_OK;
}

static enum err push_chain(struct dwarf_reader *reader,
                           struct dwarf_unit *unit,
                           Dwarf_Die *function,
                           uint64_t address,
                           struct dwarf_frame_vec *out)
{
    struct dwarf_place place = dwarf_lines_find(&unit->die, address);
    if (function == NULL) {
        return place.file != NULL ? push_frame(out, unit, NULL, place) : ERR_OK;
    }
    TRY(find_inlined(reader, function, address));
    for (size_t i = reader->inlined.len; i-- > 0;) {
        Dwarf_Die *inlined = &reader->inlined.items[i];
        TRY(push_frame(out, unit, inlined, place));
        place = dwarf_call_place(&unit->tree, inlined);
    }
    return push_frame(out, unit, function, place);
}

enum err
dwarf_reader_find(struct dwarf_reader *reader, uint64_t address, struct dwarf_frame_vec *out)
{
    dwarf_frame_vec_clear(out);
    const struct range_index *ranges = &reader->units.ranges;
    struct range_search search = range_index_search(ranges, address);
    struct dwarf_unit *unit = NULL;
    Dwarf_Die *function = NULL;
    // Units may claim each other's addresses; the right one has a function there.
    for (int claimants = 0; claimants < MAX_CLAIMANTS && function == NULL; claimants++) {
        const struct range *range = range_index_next(ranges, &search, address);
        if (range == NULL) {
            break;
        }
        TRY(find_function(reader, range->value, address, &function));
        if (unit == NULL || function != NULL) {
            unit = &reader->units.units.items[range->value];
        }
    }
    return unit != NULL ? push_chain(reader, unit, function, address, out) : ERR_OK;
}
