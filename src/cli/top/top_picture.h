// SPDX-License-Identifier: MIT
// top_picture: the screen of `cairn top` as lines of text with a style each.
//
//   cairn top: app (process 4711)                       running, 12.3 s
//   Heap   12.5 MiB  ▁▁▂▂▃▃▄▄▅▅▆▆▇▇█████████████████  peak 13.0 MiB
//   RSS    45.1 MiB  ▂▂▃▃▃▄▄▄▄▅▅▅▅▆▆▆▆▇▇▇▇██████████  peak 46.0 MiB
//   1,234,567 allocations, ...
//   the first finding
//        LIVE     CHANGE  ALLOC/S   TEMP  FUNCTION                    PLACE
//   12.0 MiB   +1.0 MiB    12.3k  1.23M  load(char const*)           app.c:12
//   ...
//   the keys, the filter that is typed, a question, or a message
//
// The drawing has no state: the same model and size give the same lines. Every line fits the width,
// in any size. Without UTF-8 all characters are ASCII. Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/top/top_drawing.h"

void top_picture_release(struct top_picture *picture);

// How many lines of a picture of this size the list has, at least 1.
size_t top_picture_list_lines(struct top_size size);

// Draw the model. `lines` of the model must be that of the size. Replaces an earlier picture.
// ERR_NO_MEMORY.
enum err top_picture_draw(const struct top_model *model,
                          struct top_size size,
                          struct top_picture *out) MUST_USE;

static inline const char *top_picture_text(const struct top_picture *picture, size_t line)
{
    return strbuf_text(&picture->texts) + picture->lines.items[line].text;
}

// Append line `line` (0 is the highest) of a chart of `lines` lines, in which `most` is full
// height: ▁▂▃▅▇██, or without UTF-8  .:-=+*##
void top_chart_append(struct strbuf *out,
                      const uint64_t *values,
                      size_t columns,
                      uint64_t most,
                      unsigned line,
                      unsigned lines,
                      bool is_utf8);
