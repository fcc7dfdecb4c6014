// SPDX-License-Identifier: MIT
#include "host/text/format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/compiler.h"

// Arithmetic on counts uses integers: a double would round 2^53 + 1 and depend on the locale. Rates
// and ratios are doubles, and become integers first.

// Return value / unit, rounded half up, with `decimals` digits after the point.
static uint64_t rounded(uint64_t value, uint64_t unit, unsigned decimals)
{
    static const uint64_t scales[] = {1, 10, 100};
    unsigned __int128 scaled = (unsigned __int128)value * scales[decimals] + unit / 2;
    return (uint64_t)(scaled / unit);
}

// Format three significant digits of value / unit. Return false if the result would show `limit` or
// more, so that 1023.9 KiB becomes 1.00 MiB rather than 1024 KiB.
static bool
print_quantity(struct human *out, uint64_t value, uint64_t unit, uint64_t limit, const char *name)
{
    uint64_t hundredths = rounded(value, unit, 2);
    uint64_t tenths = rounded(value, unit, 1);
    uint64_t whole = rounded(value, unit, 0);
    if (hundredths < 1000) {
        (void)snprintf(out->text, sizeof(out->text), "%u.%02u %s", (unsigned)(hundredths / 100),
                       (unsigned)(hundredths % 100), name);
        return hundredths < limit * 100;
    }
    if (tenths < 1000) {
        (void)snprintf(out->text, sizeof(out->text), "%u.%u %s", (unsigned)(tenths / 10),
                       (unsigned)(tenths % 10), name);
        return tenths < limit * 10;
    }
    (void)snprintf(out->text, sizeof(out->text), "%llu %s", (unsigned long long)whole, name);
    return whole < limit;
}

struct human format_bytes(uint64_t bytes)
{
    static const char *const names[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    struct human out;
    if (bytes < 1024) {
        (void)snprintf(out.text, sizeof(out.text), "%u B", (unsigned)bytes);
        return out;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (print_quantity(&out, bytes, UINT64_C(1024) << (10 * i), 1024, names[i])) {
            break;
        }
    }
    return out;
}

struct human format_count(uint64_t count)
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)count);
    struct human out;
    size_t used = 0;
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0) {
            out.text[used++] = ',';
        }
        out.text[used++] = digits[i];
    }
    out.text[used] = 0;
    return out;
}

// Format from minutes to days: "4 min 05 s".
static struct human format_long_duration(uint64_t seconds)
{
    static const struct {
        uint64_t below_seconds;
        uint64_t big_seconds;
        uint64_t small_seconds;
        const char *big;
        const char *small;
    } forms[] = {
        {3600, 60, 1, "min", "s"},
        {86400, 3600, 60, "h", "min"},
        {UINT64_MAX, 86400, 3600, "d", "h"},
    };
    struct human out = {0};
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        uint64_t small_count = rounded(seconds, forms[i].small_seconds, 0);
        uint64_t small_per_big = forms[i].big_seconds / forms[i].small_seconds;
        if (small_count * forms[i].small_seconds < forms[i].below_seconds) {
            (void)snprintf(out.text, sizeof(out.text), "%llu %s %02u %s",
                           (unsigned long long)(small_count / small_per_big), forms[i].big,
                           (unsigned)(small_count % small_per_big), forms[i].small);
            break;
        }
    }
    return out;
}

struct human format_things(uint64_t count, const char *one, const char *many)
{
    struct human out;
    (void)snprintf(out.text, sizeof(out.text), "%.26s %s", format_count(count).text,
                   count == 1 ? one : many); // longer phrases are truncated
    return out;
}

struct human format_duration(uint64_t duration_ns)
{
    static const struct {
        uint64_t unit_ns;
        uint64_t limit;
        const char *name;
    } forms[] = {{1000, 1000, "us"}, {1000000, 1000, "ms"}, {1000000000, 60, "s"}};
    struct human out;
    if (duration_ns < 1000) {
        (void)snprintf(out.text, sizeof(out.text), "%u ns", (unsigned)duration_ns);
        return out;
    }
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        if (print_quantity(&out, duration_ns, forms[i].unit_ns, forms[i].limit, forms[i].name)) {
            return out;
        }
    }
    return format_long_duration(rounded(duration_ns, 1000000000, 0));
}

struct human format_percent(uint64_t part, uint64_t whole)
{
    struct human out;
    if (whole == 0) {
        (void)snprintf(out.text, sizeof(out.text), "-");
        return out;
    }
    unsigned __int128 permille = ((unsigned __int128)part * 1000 + whole / 2) / whole;
    if (part == 0 || part == whole) {
        (void)snprintf(out.text, sizeof(out.text), part == 0 ? "0%%" : "100%%");
    } else if (permille == 0) {
        (void)snprintf(out.text, sizeof(out.text), "<0.1%%");
    } else if (part < whole && permille == 1000) {
        (void)snprintf(out.text, sizeof(out.text), ">99.9%%");
    } else {
        unsigned long long shown = permille > UINT64_MAX ? UINT64_MAX : (uint64_t)permille;
        (void)snprintf(out.text, sizeof(out.text), "%llu.%u%%", shown / 10, (unsigned)(shown % 10));
    }
    return out;
}

// Return `value`, which is not negative, rounded to an integer.
static uint64_t nearest(double value)
{
    const double limit = 18446744073709551615.0; // UINT64_MAX, rounded up
    return value + 0.5 < limit ? (uint64_t)(value + 0.5) : UINT64_MAX;
}

struct human format_percent_change(double change, double old)
{
    const char *sign = change < 0 ? "-" : change > 0 ? "+" : "";
    const uint64_t permille = nearest(1000 * (change < 0 ? -change : change) / old);
    struct human out;
    (void)snprintf(out.text, sizeof(out.text), "%s%llu.%u%%", sign,
                   (unsigned long long)(permille / 10), (unsigned)(permille % 10));
    return out;
}

struct human format_percent_error(double figure, double error)
{
    enum {
        PERCENT_MAX = 999
    };
    struct human out = {.text = ""};
    if (figure > 0 && error > 0) {
        const uint64_t percent = nearest(100 * error / figure);
        (void)snprintf(out.text, sizeof(out.text), "±%u%%",
                       percent < PERCENT_MAX ? (unsigned)percent : PERCENT_MAX);
    }
    return out;
}

struct human format_rate(double per_s)
{
    return per_s > 0 && nearest(per_s) == 0 ? (struct human){"<1"} : format_count(nearest(per_s));
}

struct human format_byte_rate(double bytes_per_s)
{
    return bytes_per_s > 0 && nearest(bytes_per_s) == 0 ? (struct human){"<1 B"}
                                                        : format_bytes(nearest(bytes_per_s));
}
