// SPDX-License-Identifier: MIT
#include "cli/options/allocator_options.h"

#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/text/toml.h"

static MUST_USE enum err
parse(const char *text, const char *origin, struct allocator_name_vec *out, struct err_info *info)
{
    struct err_info detail = {0};
    const enum err err = allocator_names_parse(text, out, &detail);
    return err == ERR_OK ? ERR_OK : err_set(info, err, "%s: %s", origin, err_text(&detail));
}

// check_plan.c and name_options.c read the rest of the file.
static MUST_USE enum err
read_file(const char *path, struct allocator_name_vec *out, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(toml_release) struct toml file = {0};
    TRY(file_read(path, TOML_MAX_BYTES, &text, info));
    TRY(toml_parse(strbuf_bytes(&text), path, &file, info));
    for (size_t i = 0; i < file.entries.len; i++) {
        const struct toml_entry *entry = &file.entries.items[i];
        if (strcmp(toml_text(&file, file.tables.items[entry->table].name), "record") != 0) {
            continue;
        }
        if (strcmp(toml_text(&file, entry->key), "allocator") != 0 || entry->type != TOML_TEXT) {
            return err_set(info, ERR_INVALID,
                           "%s:%u: [record] has one setting: allocator = \"FUNCTION=NAME,...\"",
                           path, entry->line);
        }
        TRY(parse(toml_text(&file, entry->text), "[record] allocator of cairn.toml", out, info));
    }
    return ERR_OK;
}

enum err
allocator_options_read(const char *option, struct allocator_name_vec *out, struct err_info *info)
{
    static const char path[] = "cairn.toml";
    if (option != NULL) {
        return parse(option, "--allocator", out, info);
    }
    return access(path, R_OK) == 0 ? read_file(path, out, info) : ERR_OK;
}
