// SPDX-License-Identifier: MIT
#include "cli/options/spelling.h"

#include <stddef.h>
#include <string.h>

#include "base/minmax.h"

unsigned spelling_distance(const char *typed, const char *known)
{
    unsigned table[SPELLING_LEN_MAX + 2][SPELLING_LEN_MAX + 2];
    const size_t rows = strlen(typed);
    const size_t columns = strlen(known);
    if (rows > SPELLING_LEN_MAX || columns > SPELLING_LEN_MAX || rows <= SPELLING_DISTANCE_MAX) {
        return SPELLING_DISTANCE_MAX + 1;
    }
    for (size_t i = 0; i <= rows; i++) {
        for (size_t j = 0; j <= columns; j++) {
            if (i == 0 || j == 0) {
                table[i][j] = (unsigned)(i + j);
                continue;
            }
            const unsigned change = table[i - 1][j - 1] + (typed[i - 1] != known[j - 1]);
            const unsigned shift = (unsigned)min_u64(table[i - 1][j], table[i][j - 1]) + 1;
            table[i][j] = (unsigned)min_u64(change, shift);
            if (i > 1 && j > 1 && typed[i - 1] == known[j - 2] && typed[i - 2] == known[j - 1]) {
                table[i][j] = (unsigned)min_u64(table[i][j], table[i - 2][j - 2] + 1);
            }
        }
    }
    return table[rows][columns];
}
