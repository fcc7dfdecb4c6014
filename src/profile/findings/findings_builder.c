// SPDX-License-Identifier: MIT
// findings_builder: see the header.
#include "profile/findings/findings_builder.h"

#include <inttypes.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "profile/model/function_name.h"

// Begin the sentence of the next finding.
struct strbuf *finding_begin(struct findings_builder *builder, struct finding *finding)
{
    finding->sentence = builder->out.texts.len;
    return &builder->out.texts;
}

enum err finding_add(struct findings_builder *builder, const struct finding *finding)
{
    strbuf_append_char(&builder->out.texts, '\0');
    return finding_vec_push(&builder->out.items, *finding);
}

// Append a name; the middle of a long one is omitted, because a sentence must be readable.
static void append_name(struct strbuf *out, const char *function)
{
    enum {
        NAME_BYTES = 56
    };
    CLEANUP(strbuf_release) struct strbuf name = {0};
    name_append(&name, function, NAME_NO_TEMPLATES);
    const char *text = strbuf_text(&name);
    if (name.len <= NAME_BYTES) {
        strbuf_append_text(out, text);
        return;
    }
    size_t head = NAME_BYTES / 2;
    size_t tail = name.len - NAME_BYTES / 2;
    while (head > 0 && ((unsigned char)text[head] & 0xc0) == 0x80) { // inside a UTF-8 character
        head--;
    }
    while (tail < name.len && ((unsigned char)text[tail] & 0xc0) == 0x80) {
        tail++;
    }
    strbuf_append(out, text, head);
    strbuf_append_text(out, "...");
    strbuf_append_text(out, text + tail);
}

// Append "load (app.c:12)".
void finding_append_site(const struct findings_builder *builder,
                         struct strbuf *out,
                         uint32_t location)
{
    const struct profile *profile = builder->selection->profile;
    if (location == REC_NONE) {
        strbuf_append_text(out, "code without a stack");
        return;
    }
    append_name(out, profile_location_function(profile, location));
    const char *file = profile_location_file(profile, location);
    const uint32_t line = profile_location_get(profile, location)->line;
    if (file[0] != '\0') {
        strbuf_append_text(out, " (");
        append_name(out, path_file_name(file));
        strbuf_printf(out, line > 0 ? ":%" PRIu32 ")" : ")", line);
    }
}
