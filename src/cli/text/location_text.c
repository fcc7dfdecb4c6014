// SPDX-License-Identifier: MIT
#include "cli/text/location_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "cli/text/screen_text.h"
#include "host/os/file.h"

enum {
    NAME_COLUMNS_MIN = 24,  // of a function's name, which come before the module's
    MODULE_COLUMNS_MIN = 8, // of a module's name; fewer say nothing
    BRACKETS_COLUMNS = 4,   // around it
};

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

static bool names_module(const char *function, const char *module_path)
{
    static const char offset[] = "+0x";
    const char *module = path_file_name(module_path);
    const size_t len = strlen(module);
    return len > 0 && strncmp(function, module, len) == 0 &&
           strncmp(function + len, offset, sizeof(offset) - 1) == 0;
}

bool location_names_module(const struct profile *profile, uint32_t location)
{
    return location != REC_NONE && names_module(profile_location_function(profile, location),
                                                profile_location_module(profile, location));
}

// Append both in `columns`: the module in what the name's first columns leave, or not at all.
static void append_fitting(const char *function,
                           const char *module_path,
                           size_t columns,
                           size_t module_columns,
                           struct strbuf *name,
                           struct strbuf *module)
{
    CLEANUP(strbuf_release) struct strbuf safe = {0};
    screen_append_function(name, function, columns);
    screen_append(&safe, path_file_name(module_path));
    const size_t name_columns = min_u64(screen_columns(strbuf_text(name)), NAME_COLUMNS_MIN);
    const size_t room =
        min_u64(excess_u64(columns, name_columns + BRACKETS_COLUMNS), module_columns);
    if (safe.len == 0 || names_module(function, module_path) ||
        room < min_u64(screen_columns(strbuf_text(&safe)), MODULE_COLUMNS_MIN)) {
        return;
    }
    screen_append_cut(module, strbuf_text(&safe), room, SCREEN_CUT_START);
    strbuf_clear(name);
    screen_append_function(name, function,
                           columns - BRACKETS_COLUMNS - screen_columns(strbuf_text(module)));
}

bool function_is_outside_main(const char *name)
{
    static const char *const names[] = {"_start", "__libc_start_main", "__libc_start_main_impl",
                                        "__libc_start_main@@GLIBC_2.34", "__libc_start_call_main"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
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
    if (look->use_full_names) {
        screen_append(&name, text);
        screen_append(&module, path);
    } else {
        append_fitting(text, path, excess_u64(look->width, used + strlen(others)),
                       look->module_columns, &name, &module);
    }
    // Output errors are found when the stream is closed.
    (void)fprintf(out, "%s%s%s%s", paint_begin(look->use_color, PAINT_FUNCTION), strbuf_text(&name),
                  paint_end(look->use_color), others);
    if (module.len > 0) {
        (void)fprintf(out, "  %s[%s]%s", paint_begin(look->use_color, PAINT_PLACE),
                      strbuf_text(&module), paint_end(look->use_color));
    }
    (void)fputc('\n', out);
}
