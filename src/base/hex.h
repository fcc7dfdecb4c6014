// SPDX-License-Identifier: MIT
// hex: hexadecimal digits, of either case. Context: T and H; pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

// Return the digit's value, -1 if it is not a digit.
static inline int hex_digit(char character)
{
    if (character >= '0' && character <= '9') {
        return character - '0';
    }
    char lower = (char)(character | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Write the bytes of `text`, pairs of digits, to `out`. Returns no bytes if `text` is anything else
// or longer than `max_bytes` bytes.
static inline struct bytes hex_parse(const char *text, uint8_t *out, size_t max_bytes)
{
    size_t len = 0;
    for (; text[0] != '\0'; text += 2) {
        int high = hex_digit(text[0]);
        int low = high >= 0 ? hex_digit(text[1]) : -1;
        if (low < 0 || len == max_bytes) {
            return (struct bytes){0};
        }
        out[len++] = (uint8_t)(high << 4 | low);
    }
    return (struct bytes){.data = out, .len = len};
}
