// SPDX-License-Identifier: MIT
#include "host/text/number.h"

#include <string.h>

#include "base/hex.h"

bool number_take(const char **at, unsigned base, uint64_t *out)
{
    const char *digits = *at;
    uint64_t number = 0;
    for (int digit = hex_digit(*digits); digit >= 0 && (unsigned)digit < base;
         digit = hex_digit(*++digits)) {
        if (__builtin_mul_overflow(number, base, &number) ||
            __builtin_add_overflow(number, (uint64_t)digit, &number)) {
            number = UINT64_MAX; // stays: the next digit overflows too
        }
    }
    if (digits == *at) {
        return false;
    }
    *at = digits;
    *out = number;
    return true;
}

bool number_parse(const char *text, uint64_t most, uint64_t *out)
{
    uint64_t number;
    if (!number_take(&text, 10, &number) || *text != '\0' || number > most) {
        return false;
    }
    *out = number;
    return true;
}

uint64_t number_field(const char *text)
{
    uint64_t number = 0;
    text += strspn(text, " \t");
    (void)number_take(&text, 10, &number); // 0 if there is none
    return number;
}
