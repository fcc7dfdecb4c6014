// SPDX-License-Identifier: MIT
#include "target/preload/python/python_lines.h"

#include <stdbool.h>

enum {
    KIND_ONE_LINE = 10,
    KIND_NO_COLUMNS = 13,
    KIND_NONE = 15,
    ENTRY_BEGIN = 0x80,
    NUMBER_MORE = 0x40,
    NUMBER_BITS = 6,
    PAIR_NONE = -128,
    UNIT_BYTES = 2,
};

// Read the signed number at `at`: the lowest bit is the sign.
static int64_t read_number(const uint8_t *table, uint64_t size, uint64_t at)
{
    uint64_t number = 0;
    uint32_t shift = 0;
    bool has_more = true;
    for (; has_more && at < size && shift < 32; at++) {
        number |= (uint64_t)(table[at] & (NUMBER_MORE - 1)) << shift;
        shift += NUMBER_BITS;
        has_more = (table[at] & NUMBER_MORE) != 0;
    }
    return (number & 1) != 0 ? -(int64_t)(number >> 1) : (int64_t)(number >> 1);
}

uint32_t python_lines_find(const uint8_t *table, uint64_t size, uint32_t first_line, uint64_t unit)
{
    int64_t line = first_line;
    uint64_t begin = 0;
    for (uint64_t at = 0; at < size;) {
        const uint32_t kind = table[at] >> 3 & 15;
        const uint64_t end = begin + (table[at] & 7) + 1;
        at++;
        if (kind == KIND_NO_COLUMNS || kind == KIND_NO_COLUMNS + 1) {
            line += read_number(table, size, at);
        } else if (kind >= KIND_ONE_LINE && kind < KIND_NO_COLUMNS) {
            line += kind - KIND_ONE_LINE;
        }
        if (unit < end) {
            return kind == KIND_NONE || line < 0 || line > UINT32_MAX ? first_line : (uint32_t)line;
        }
        begin = end;
        while (at < size && (table[at] & ENTRY_BEGIN) == 0) {
            at++;
        }
    }
    return first_line;
}

uint32_t
python_lines_find_pair(const uint8_t *table, uint64_t size, uint32_t first_line, uint64_t unit)
{
    int64_t line = first_line;
    uint64_t end = 0;
    for (uint64_t at = 0; at + 1 < size; at += 2) {
        const int8_t more = (int8_t)table[at + 1];
        end += table[at];
        line += more != PAIR_NONE ? more : 0;
        if (unit < end / UNIT_BYTES) {
            return more == PAIR_NONE || line < 0 || line > UINT32_MAX ? first_line : (uint32_t)line;
        }
    }
    return first_line;
}
