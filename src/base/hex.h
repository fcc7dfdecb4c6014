// SPDX-License-Identifier: MIT
// hex: a hexadecimal digit, of either case. Context: T and H; pure.
#pragma once

// Its value, -1 for what is none.
static inline int hex_digit(char character)
{
    if (character >= '0' && character <= '9') {
        return character - '0';
    }
    char lower = (char)(character | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}
