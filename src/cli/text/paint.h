// SPDX-License-Identifier: MIT
// paint: the colours of text output, as escape sequences; "" without colour. Context: H; pure.
#pragma once

#include <stdbool.h>

enum paint {
    PAINT_TITLE,
    PAINT_COST,
    PAINT_FUNCTION,
    PAINT_PLACE,
    PAINT_WARNING,
    PAINT_GOOD,
};

const char *paint_begin(bool use_color, enum paint paint);
const char *paint_end(bool use_color);
