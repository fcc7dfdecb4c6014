// SPDX-License-Identifier: MIT
#include "host/text/visible_text.h"

#include "base/compiler.h"
#include "host/text/utf8.h"

struct code_range {
    uint32_t first;
    uint32_t last;
};

// Shown as escapes: C0 and C1 controls, DEL, invisible characters and changes of the writing
// direction.
static const struct code_range hidden_ranges[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},       {0x61c, 0x61c},
    {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},   {0xfe00, 0xfe0f},
    {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff},
};

bool visible_is_hidden(uint32_t code)
{
    for (size_t i = 0; i < ARRAY_LEN(hidden_ranges); i++) {
        if (code >= hidden_ranges[i].first && code <= hidden_ranges[i].last) {
            return true;
        }
    }
    return false;
}

void visible_append_escape(struct strbuf *out, uint32_t code)
{
    if (code < 0x80) {
        strbuf_printf(out, "\\x%02x", code);
    } else {
        strbuf_printf(out, "\\u{%x}", code);
    }
}

void visible_append(struct strbuf *out, const char *text)
{
    while (*text != '\0') {
        uint32_t code = 0;
        size_t len = utf8_decode(text, &code);
        if (len == 0) {
            strbuf_printf(out, "\\x%02x", (uint8_t)*text);
            len = 1;
        } else if (visible_is_hidden(code)) {
            visible_append_escape(out, code);
        } else {
            strbuf_append(out, text, len);
        }
        text += len;
    }
}
