// SPDX-License-Identifier: MIT
#include "profile/compare/diff_format.h"

#include <math.h>
#include <stdio.h>

struct human diff_format(enum cost cost, double value)
{
    const double whole_from = 1000; // smaller values show the decimals that a division left
    bool is_bytes = cost_get_info(cost)->unit == COST_UNIT_BYTES;
    if (isnan(value)) {
        return (struct human){"unknown"};
    }
    uint64_t rounded = (uint64_t)(value + 0.5);
    if (value >= whole_from || value == (double)rounded) {
        return is_bytes ? format_bytes(rounded) : format_count(rounded);
    }
    struct human out;
    (void)snprintf(out.text, sizeof(out.text), "%.3g%s", value, is_bytes ? " B" : ""); // fits
    return out;
}

struct human diff_format_change(enum cost cost, double change)
{
    struct human size = diff_format(cost, change < 0 ? -change : change);
    struct human out;
    const char *sign = change < 0 ? "-" : change > 0 ? "+" : "";
    (void)snprintf(out.text, sizeof(out.text), "%s%.40s", sign, size.text);
    return out;
}

struct human diff_format_error(enum cost cost, double error)
{
    struct human out = {.text = ""};
    if (error > 0) {
        (void)snprintf(out.text, sizeof(out.text), " ±%.40s",
                       diff_format(cost, error).text); // fits
    }
    return out;
}

struct human diff_format_ratio(struct diff_change change)
{
    struct human out = {.text = ""};
    if (change.class == DIFF_SAME) {
        (void)snprintf(out.text, sizeof(out.text), "same");
    } else if (change.class == DIFF_UNKNOWN) {
        (void)snprintf(out.text, sizeof(out.text), "not compared");
    } else if (change.old == 0) {
        (void)snprintf(out.text, sizeof(out.text), "from 0");
    } else {
        out = format_percent_change(change.change, change.old);
    }
    return out;
}
