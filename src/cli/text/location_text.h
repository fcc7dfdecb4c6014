// SPDX-License-Identifier: MIT
// location_text: the function and the place of a location, as the report and `cairn top` show them.
//
// Every text comes from the recording, and passes screen_text here. Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/text/strbuf.h"
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
