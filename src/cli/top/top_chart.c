// SPDX-License-Identifier: MIT
#include "cli/top/top_chart.h"

#include "base/minmax.h"
#include "host/text/utf8.h"

enum {
    STEPS = 8 // of a character
};

void top_chart_live(const struct timeline *timeline, uint64_t *values, size_t columns)
{
    const size_t count = timeline->points.len;
    for (size_t column = 0; column < columns; column++) {
        const size_t first = column * count / columns;
        const size_t end = (column + 1) * count / columns;
        values[column] = 0;
        for (size_t i = first; i < count && (i == first || i < end); i++) {
            values[column] = max_u64(values[column], timeline->points.items[i].live_bytes);
        }
    }
}

void top_chart_rss(const struct rss_breakdown *rss,
                   uint64_t runtime_ms,
                   uint64_t *values,
                   size_t columns)
{
    size_t next = 0;
    uint64_t rss_bytes = 0;
    for (size_t column = 0; column < columns; column++) {
        const uint64_t end_ms = (column + 1) * runtime_ms / columns;
        for (; next < rss->samples.len && rss->samples.items[next].time_ms <= end_ms; next++) {
            rss_bytes = rss->samples.items[next].rss_bytes;
        }
        values[column] = rss_bytes;
    }
}

// Return the height of a value in whole steps. Only 0 has none.
static uint64_t height_of(uint64_t value, uint64_t most, uint64_t steps)
{
    return most == 0 || value == 0
               ? 0
               : max_u64(1,
                         (uint64_t)((double)min_u64(value, most) / (double)most * (double)steps));
}

void top_chart_append(struct strbuf *out,
                      const uint64_t *values,
                      size_t columns,
                      uint64_t most,
                      unsigned line,
                      unsigned lines,
                      bool is_utf8)
{
    static const char plain[STEPS + 1] = " .:-=+*##";
    const uint32_t lower_one_eighth = 0x2581;
    const uint64_t below = (uint64_t)(lines - 1 - line) * STEPS;
    for (size_t i = 0; i < columns; i++) {
        const uint64_t height = height_of(values[i], most, (uint64_t)lines * STEPS);
        const uint64_t steps = height > below ? min_u64(height - below, STEPS) : 0;
        if (steps > 0 && is_utf8) {
            utf8_append(out, lower_one_eighth + (uint32_t)steps - 1);
        } else {
            strbuf_append_char(out, plain[steps]);
        }
    }
}
