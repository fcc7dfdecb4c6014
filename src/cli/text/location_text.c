// SPDX-License-Identifier: MIT
#include "cli/text/location_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/text/paint.h"
#include "cli/text/screen_text.h"
#include "host/os/file.h"

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
    screen_append(out, is_full ? file : path_file_name(file));
    const uint32_t line = profile_location_get(profile, location)->line;
    if (line != 0) {
        strbuf_printf(out, ":%" PRIu32, line);
    }
}

bool location_names_module(const struct profile *profile, uint32_t location)
{
    static const char offset[] = "+0x";
    if (location == REC_NONE) {
        return false;
    }
    const char *name = profile_location_function(profile, location);
    const char *module = path_file_name(profile_location_module(profile, location));
    const size_t len = strlen(module);
    return len > 0 && strncmp(name, module, len) == 0 &&
           strncmp(name + len, offset, sizeof(offset) - 1) == 0;
}

void function_print(FILE *out,
                    const struct code_union *code,
                    uint32_t function,
                    const char *others,
                    size_t used,
                    const struct function_look *look)
{
    const char *text = function != REC_NONE ? code_union_name(code, function) : "(no stack)";
    const char *path = function != REC_NONE ? code_union_module(code, function) : "";
    CLEANUP(strbuf_release) struct strbuf name = {0};
    CLEANUP(strbuf_release) struct strbuf module = {0};
    CLEANUP(strbuf_release) struct strbuf cut = {0};
    screen_append(&module, look->use_full_names ? path : path_file_name(path));
    screen_append_cut(&cut, strbuf_text(&module),
                      look->use_full_names ? SIZE_MAX : look->module_columns, SCREEN_CUT_START);
    used += strlen(others) + (cut.len > 0 ? 4 + screen_columns(strbuf_text(&cut)) : 0);
    if (look->use_full_names) {
        screen_append(&name, text);
    } else {
        screen_append_function(&name, text, look->width > used ? look->width - used : 0);
    }
    // Output errors are found when the stream is closed.
    (void)fprintf(out, "%s%s%s%s", paint_begin(look->use_color, PAINT_FUNCTION), strbuf_text(&name),
                  paint_end(look->use_color), others);
    if (cut.len > 0) {
        (void)fprintf(out, "  %s[%s]%s", paint_begin(look->use_color, PAINT_PLACE),
                      strbuf_text(&cut), paint_end(look->use_color));
    }
    (void)fputc('\n', out);
}
