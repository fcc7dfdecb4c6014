// SPDX-License-Identifier: MIT
// top_chart: a curve over time in a few lines of text.
//
//   values of the run --top_chart_live, top_chart_rss--> one value for each column
//                                  --top_chart_append--> ▁▂▃▅▇██  or, without UTF-8,  .:-=+*##
//
// Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/text/strbuf.h"
#include "profile/tables/rss_breakdown.h"
#include "profile/time/timeline.h"

enum {
    TOP_CHART_COLUMNS_MAX = 512
};

// Fill `columns` values that cover the run: the highest live bytes of the slices in each, or the
// RSS at the end of each.
void top_chart_live(const struct timeline *timeline, uint64_t *values, size_t columns);
void top_chart_rss(const struct rss_breakdown *rss,
                   uint64_t runtime_ms,
                   uint64_t *values,
                   size_t columns);

// Append line `line` (0 is the highest) of a chart of `lines` lines, in which `most` is full
// height.
void top_chart_append(struct strbuf *out,
                      const uint64_t *values,
                      size_t columns,
                      uint64_t most,
                      unsigned line,
                      unsigned lines,
                      bool is_utf8);
