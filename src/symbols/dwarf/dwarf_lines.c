// SPDX-License-Identifier: MIT
#include "symbols/dwarf/dwarf_lines.h"

#include <dwarf.h>

// Return the last row at or before `address`, `count` if there is none.
static size_t last_row_at(Dwarf_Lines *lines, size_t count, uint64_t address)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        Dwarf_Addr row_address;
        if (dwarf_lineaddr(dwarf_onesrcline(lines, middle), &row_address) != 0) {
            return count;
        }
        if (row_address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 ? low - 1 : count;
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

struct dwarf_place dwarf_lines_find(Dwarf_Die *unit_die, uint64_t address)
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

struct dwarf_place dwarf_call_place(Dwarf_Die *unit_die, Dwarf_Die *inlined)
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
