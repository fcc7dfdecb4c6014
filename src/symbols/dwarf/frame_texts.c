// SPDX-License-Identifier: MIT
#include "symbols/dwarf/frame_texts.h"

#include <string.h>

#include "symbols/dwarf/dwarf_scopes.h"
#include "symbols/names/symbol_name.h"

enum {
    MAX_PATH_BYTES = 8192
};

void frame_texts_clear(struct frame_texts *texts)
{
    map_u64_clear(&texts->functions);
    map_u64_clear(&texts->files);
}

void frame_texts_release(struct frame_texts *texts)
{
    map_u64_release(&texts->functions);
    map_u64_release(&texts->files);
    strbuf_release(&texts->text);
}

// Return whether a text was found at this place before, and its id.
static bool is_known_text(struct map_u64 *places, uint64_t place, uint32_t *out_id)
{
    const uint32_t *known = map_u64_find(places, place);
    *out_id = known != NULL ? *known : 0;
    return known != NULL;
}

// Add t->text, which is that of the place.
static enum err
add_text(struct frame_texts *t, struct map_u64 *places, uint64_t place, uint32_t *out_id)
{
    TRY(string_table_intern(t->strings, strbuf_text(&t->text), t->text.len, out_id));
    return map_u64_put(places, place, *out_id);
}

enum err frame_texts_function(struct frame_texts *t, const char *name, uint32_t *out_id)
{
    if (name == NULL) {
        *out_id = 0;
        return ERR_OK;
    }
    if (is_known_text(&t->functions, (uintptr_t)name, out_id)) {
        return ERR_OK;
    }
    TRY(symbol_name_demangle(name, &t->text));
    return add_text(t, &t->functions, (uintptr_t)name, out_id);
}

enum err frame_texts_scoped(struct frame_texts *t, struct dwarf_frame *frame, uint32_t *out_id)
{
    uint64_t place = (uintptr_t)frame->declaration.addr;
    if (is_known_text(&t->functions, place, out_id)) {
        return ERR_OK;
    }
    CLEANUP(strbuf_release) struct strbuf name = {0};
    dwarf_append_scopes(&frame->declaration, &name);
    strbuf_append(&name, frame->name, strnlen(frame->name, SYMBOL_NAME_MAX));
    TRY(strbuf_result(&name));
    TRY(symbol_name_demangle(strbuf_text(&name), &t->text));
    return add_text(t, &t->functions, place, out_id);
}

// Append `path` without redundant parts: "//" and "/./". ".." stays, because it has another meaning
// after a symbolic link.
static void append_path(struct strbuf *out, const char *path)
{
    size_t len = strnlen(path, MAX_PATH_BYTES);
    for (size_t i = 0; i < len; i++) {
        bool ends_at_slash = out->len > 0 && out->data[out->len - 1] == '/';
        bool is_dot = path[i] == '.' && i + 1 < len && path[i + 1] == '/';
        if (ends_at_slash && path[i] == '/') {
            continue;
        }
        if (is_dot && (ends_at_slash || out->len == 0)) {
            i++;
            continue;
        }
        strbuf_append_char(out, path[i]);
    }
}

enum err frame_texts_file(struct frame_texts *t, const struct dwarf_frame *frame, uint32_t *out_id)
{
    const char *file = frame->place.file;
    if (file == NULL) {
        *out_id = 0;
        return ERR_OK;
    }
    if (is_known_text(&t->files, (uintptr_t)file, out_id)) {
        return ERR_OK;
    }
    strbuf_clear(&t->text);
    if (*file != '/' && frame->directory != NULL) {
        append_path(&t->text, frame->directory);
        strbuf_append_char(&t->text, '/');
    }
    append_path(&t->text, file);
    TRY(strbuf_result(&t->text));
    return add_text(t, &t->files, (uintptr_t)file, out_id);
}
