// SPDX-License-Identifier: MIT
// location_text: see the header.
#include "cli/text/location_text.h"

#include <inttypes.h>

#include "cli/text/screen_text.h"

void location_append_function(struct strbuf *out,
                              const struct profile *profile,
                              uint32_t location,
                              bool is_inlined,
                              size_t columns)
{
    static const char inlined[] = " (inlined)";
    const size_t reserved = is_inlined ? sizeof(inlined) - 1 : 0;
    if (location == REC_NONE) {
        strbuf_append_text(out, "(no stack)");
        return;
    }
    const char *name = profile_location_function(profile, location);
    if (columns == SIZE_MAX) {
        screen_append(out, name);
    } else {
        screen_append_function(out, name, columns > reserved ? columns - reserved : 0);
    }
    strbuf_append_text(out, is_inlined ? inlined : "");
}

void location_append_line(struct strbuf *out,
                          const struct profile *profile,
                          uint32_t location,
                          bool is_full)
{
    const char *file = location != REC_NONE ? profile_location_file(profile, location) : "";
    if (file[0] == '\0') {
        return;
    }
    screen_append(out, is_full ? file : screen_basename(file));
    const uint32_t line = profile_location_get(profile, location)->line;
    if (line != 0) {
        strbuf_printf(out, ":%" PRIu32, line);
    }
}
