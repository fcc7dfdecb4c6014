// SPDX-License-Identifier: MIT
// clean_text: names on one line. See clean_text.h.
#include "formats/codec/clean_text.h"

#include <inttypes.h>
#include <stdbool.h>

#include "host/text/utf8.h"
#include "host/text/visible_text.h"

static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

// The length of what stays as it is at the start of a text: for most names, all of it.
static size_t plain_len(const char *text, char reserved)
{
    size_t len = 0;
    while (text[len] >= ' ' && text[len] < 0x7f && text[len] != reserved) {
        len++;
    }
    return len;
}

void clean_append(struct strbuf *out, const char *text, struct clean_rule rule)
{
    while (true) {
        const size_t plain = plain_len(text, rule.reserved);
        strbuf_append(out, text, plain);
        text += plain;
        if (*text == '\0') {
            return;
        }
        uint32_t code = 0;
        size_t len = utf8_decode(text, &code);
        if (len == 0) {
            strbuf_append_text(out, "\xef\xbf\xbd");
            len = 1;
        } else if (is_control(code)) {
            strbuf_append_char(out, ' ');
        } else if (visible_is_hidden(code)) {
            visible_append_escape(out, code);
        } else if (len == 1 && *text == rule.reserved) {
            strbuf_append_char(out, rule.replacement);
        } else {
            strbuf_append(out, text, len);
        }
        text += len;
    }
}

void clean_append_function(struct strbuf *out,
                           const struct profile *profile,
                           uint32_t location,
                           struct clean_rule rule)
{
    if (location == REC_NONE) {
        strbuf_append_text(out, "(no stack)");
        return;
    }
    clean_append(out, profile_location_function(profile, location), rule);
}

void clean_append_place(struct strbuf *out,
                        const struct profile *profile,
                        uint32_t location,
                        struct clean_rule rule)
{
    const struct code_location *place = profile_location_get(profile, location);
    const char *file = profile_location_file(profile, location);
    bool has_name = (place->flags & CODE_UNKNOWN) == 0;
    strbuf_printf(out, "0x%" PRIX64 ": ", place->offset);
    clean_append(out, has_name ? profile_location_function(profile, location) : "???", rule);
    if (file[0] == '\0') {
        strbuf_append_text(out, " (in ");
        clean_append(out, profile_location_module(profile, location), rule);
        strbuf_append_char(out, ')');
        return;
    }
    strbuf_append_text(out, " (");
    clean_append(out, file, rule);
    strbuf_printf(out, ":%" PRIu32 ")", place->line);
}
