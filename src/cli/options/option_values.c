// SPDX-License-Identifier: MIT
#include "cli/options/option_values.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "host/text/number.h"

struct unit {
    const char *name;
    double factor;
};

// Parse a number and a unit, which one space may separate, into a product of at most `maximum`.
// Refuse signs, other spaces, hexadecimal numbers and "nan".
static bool parse_with_unit(
    const char *text, const struct unit *units, size_t unit_count, double maximum, double *out)
{
    char *end;
    if (!isdigit((unsigned char)text[0]) || text[strspn(text, "0123456789.")] == 'x') {
        return false;
    }
    errno = 0;
    double number = strtod(text, &end);
    const char *unit = end + (end[0] == ' ' && end[1] != '\0');
    for (size_t i = 0; errno == 0 && i < unit_count; i++) {
        if (strcmp(unit, units[i].name) == 0 && number * units[i].factor <= maximum) {
            *out = number * units[i].factor;
            return true;
        }
    }
    return false;
}

bool duration_parse(const char *text, uint64_t *out_ms)
{
    static const struct unit units[] = {{"", 1e3},         {"ms", 1},     {"s", 1e3},
                                        {"m", 60e3},       {"min", 60e3}, {"h", 3600e3},
                                        {"d", 24 * 3600e3}};
    const double year_ms = 366 * 24 * 3600e3;
    double number;
    if (!parse_with_unit(text, units, ARRAY_LEN(units), year_ms, &number)) {
        return false;
    }
    *out_ms = (uint64_t)(number + 0.5);
    return true;
}

bool size_parse(const char *text, uint64_t *out_bytes)
{
    static const double kib = 1024;
    static const struct unit units[] = {
        {"", 1},
        {"B", 1},
        {"k", kib},
        {"K", kib},
        {"KiB", kib},
        {"kB", 1e3},
        {"KB", 1e3},
        {"M", kib * kib},
        {"MiB", kib * kib},
        {"MB", 1e6},
        {"G", 1 << 30},
        {"GiB", 1 << 30},
        {"GB", 1e9},
        {"T", kib * (1 << 30)},
        {"TiB", kib * (1 << 30)},
    };
    const double largest = 9e18; // below 2^63
    double number;
    if (!parse_with_unit(text, units, ARRAY_LEN(units), largest, &number)) {
        return false;
    }
    *out_bytes = (uint64_t)(number + 0.5);
    return true;
}

bool count_parse(const char *text, uint64_t *out)
{
    enum {
        DIGITS_MAX = 18
    };
    char digits[DIGITS_MAX + 1];
    size_t len = 0;
    for (size_t i = 0; text[i] != '\0'; i++) {
        const bool separates =
            i > 0 && (text[i] == ',' || text[i] == '_') && isdigit((unsigned char)text[i + 1]);
        if (!separates && len == DIGITS_MAX) {
            return false;
        }
        digits[len] = text[i];
        len += !separates;
    }
    digits[len] = '\0';
    return number_parse(digits, UINT64_MAX, out);
}

bool percent_parse(const char *text, uint64_t *out_hundredths)
{
    static const struct unit units[] = {{"", 100}, {"%", 100}};
    const double largest = 1e8;
    double number;
    if (!parse_with_unit(text, units, ARRAY_LEN(units), largest, &number)) {
        return false;
    }
    *out_hundredths = (uint64_t)(number + 0.5);
    return true;
}

bool range_parse(const char *text, value_parse *parse, struct value_range *out)
{
    enum {
        VALUE_MAX_LEN = 31
    };
    struct value_range range = {.low = 0, .high = UINT64_MAX, .is_set = true};
    const char *dots = strstr(text, "..");
    if (dots == NULL) {
        if (!parse(text, &range.low)) {
            return false;
        }
        range.high = range.low;
        *out = range;
        return true;
    }
    char low[VALUE_MAX_LEN + 1] = "";
    size_t low_len = (size_t)(dots - text);
    if (low_len > VALUE_MAX_LEN || (low_len == 0 && dots[2] == '\0')) {
        return false;
    }
    memcpy(low, text, low_len);
    if ((low_len > 0 && !parse(low, &range.low)) ||
        (dots[2] != '\0' && !parse(dots + 2, &range.high)) || range.low > range.high) {
        return false;
    }
    *out = range;
    return true;
}
