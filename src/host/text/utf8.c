// SPDX-License-Identifier: MIT
#include "host/text/utf8.h"

#include "base/compiler.h"

// forms[i] is a character of i + 1 bytes.
static const struct {
    uint8_t mask;
    uint8_t lead;
    uint32_t lowest; // below this a shorter form exists
} forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};

bool utf8_is_character(uint32_t code)
{
    return code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

size_t utf8_decode_bytes(const char *text, size_t len, uint32_t *code)
{
    const uint8_t lead = len > 0 ? (uint8_t)text[0] : 0xff;
    size_t more = 0;
    while (more < ARRAY_LEN(forms) && (lead & forms[more].mask) != forms[more].lead) {
        more++;
    }
    if (more == ARRAY_LEN(forms)) {
        return 0;
    }
    uint32_t value = lead & (uint8_t)~forms[more].mask;
    for (size_t i = 1; i <= more; i++) {
        if (i == len || ((uint8_t)text[i] & 0xc0) != 0x80) {
            return 0; // also at the NUL after a text
        }
        value = value << 6 | ((uint8_t)text[i] & 0x3f);
    }
    if (value < forms[more].lowest || !utf8_is_character(value)) {
        return 0;
    }
    *code = value;
    return more + 1;
}

size_t utf8_decode(const char *text, uint32_t *code)
{
    return utf8_decode_bytes(text, ARRAY_LEN(forms), code);
}

bool utf8_is_valid(const char *text)
{
    while (*text != '\0') {
        uint32_t code;
        const size_t len = utf8_decode(text, &code);
        if (len == 0) {
            return false;
        }
        text += len;
    }
    return true;
}

size_t utf8_cut(const char *text, size_t len, size_t max)
{
    if (len <= max) {
        return len;
    }
    size_t cut = max;
    while (cut > 0 && max - cut < ARRAY_LEN(forms) - 1 && ((uint8_t)text[cut] & 0xc0) == 0x80) {
        cut--;
    }
    return ((uint8_t)text[cut] & 0xc0) == 0x80 ? max : cut;
}

void utf8_append(struct strbuf *out, uint32_t code)
{
    size_t more = 0;
    while (more + 1 < ARRAY_LEN(forms) && code >= forms[more + 1].lowest) {
        more++;
    }
    strbuf_append_char(out, (char)(forms[more].lead | code >> (6 * more)));
    while (more-- > 0) {
        strbuf_append_char(out, (char)(0x80 | (code >> (6 * more) & 0x3f)));
    }
}
