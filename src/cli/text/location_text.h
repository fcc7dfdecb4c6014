// SPDX-License-Identifier: MIT
// location_text: functions and places, as the report, comparisons and `cairn top` show them.
//
// Every text comes from the recording, and passes screen_text here. Context: H; pure, except for
// function_print.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "host/text/strbuf.h"
#include "profile/model/code_union.h"
#include "profile/model/profile.h"

// Append a function's name in at most `columns`, with "(inlined)" if inlined; "(no stack)" for
// REC_NONE. Unnamed code shows its address. SIZE_MAX: the whole name, with its types.
void location_append_function(struct strbuf *out,
                              const struct profile *profile,
                              uint32_t location,
                              bool is_inlined,
                              size_t columns);

// Append "file:line", "file", or nothing if unknown; the whole path if `is_full`.
void location_append_line(struct strbuf *out,
                          const struct profile *profile,
                          uint32_t location,
                          bool is_full);

// Return whether the name of the function begins with its module, as that of code without a name
// does: "redis-server+0x64da0". The module need not be beside it.
bool location_names_module(const struct profile *profile, uint32_t location);

// How a line shows a function.
struct function_look {
    bool use_full_names; // whole names and paths, without a limit of columns
    bool use_color;
    size_t width;          // columns of the line
    size_t module_columns; // for the module's name, at most
};

// Whether a function is one of the C library's on the way to main, which every program has.
bool function_is_outside_main(const char *name);

// Print "function  [module]" and the end of the line, behind the first `used` columns. `others`
// follows the name. REC_NONE is "(no stack)". Where both do not fit, the module is cut first, and
// is left out before the name loses its first columns. It is left out beside a name that begins
// with it, too.
void function_print(FILE *out,
                    const struct code_union *code,
                    uint32_t function,
                    const char *others,
                    size_t used,
                    const struct function_look *look);
