// SPDX-License-Identifier: MIT
#include "cli/text/paint.h"

const char *paint_begin(bool use_color, enum paint paint)
{
    static const char *const codes[] = {
        [PAINT_TITLE] = "\033[1m", [PAINT_COST] = "\033[33m",    [PAINT_FUNCTION] = "\033[36m",
        [PAINT_PLACE] = "\033[2m", [PAINT_WARNING] = "\033[31m", [PAINT_GOOD] = "\033[32m",
    };
    return use_color ? codes[paint] : "";
}

const char *paint_end(bool use_color)
{
    return use_color ? "\033[0m" : "";
}
