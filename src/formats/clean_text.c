// SPDX-License-Identifier: MIT
// clean_text: names on one line. See clean_text.h.
#include "formats/clean_text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "profile/code_union.h"

static bool is_continuation(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

// The length of the well-formed UTF-8 sequence at `text`, 0 if there is none. Stops at the zero.
static size_t sequence_len(const unsigned char *text)
{
    unsigned char lead = text[0];
    if (lead < 0x80) {
        return 1;
    }
    if (lead < 0xc2 || lead > 0xf4 || !is_continuation(text[1])) {
        return 0;
    }
    if (lead < 0xe0) {
        return 2;
    }
    if ((lead == 0xe0 && text[1] < 0xa0) || (lead == 0xed && text[1] > 0x9f) ||
        (lead == 0xf0 && text[1] < 0x90) || (lead == 0xf4 && text[1] > 0x8f) ||
        !is_continuation(text[2])) {
        return 0;
    }
    if (lead < 0xf0) {
        return 3;
    }
    return is_continuation(text[3]) ? 4 : 0;
}

static bool is_control(const unsigned char *text)
{
    return text[0] < 0x20 || text[0] == 0x7f || (text[0] == 0xc2 && text[1] < 0xa0);
}

void clean_append(struct strbuf *out, const char *text, struct clean_rule rule)
{
    const unsigned char *at = (const unsigned char *)text;
    while (*at != '\0') {
        size_t len = sequence_len(at);
        if (len == 0) {
            strbuf_append_text(out, "\xef\xbf\xbd");
            len = 1;
        } else if (is_control(at)) {
            strbuf_append_char(out, ' ');
        } else if (len == 1 && (char)*at == rule.reserved) {
            strbuf_append_char(out, rule.stand_in);
        } else {
            strbuf_append(out, at, len);
        }
        at += len;
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
    const struct code_location *place = profile_location_get(profile, location);
    if ((place->flags & CODE_UNKNOWN) == 0) {
        clean_append(out, profile_location_function(profile, location), rule);
        return;
    }
    const char *module = path_file_name(profile_location_module(profile, location));
    clean_append(out, module, rule);
    strbuf_printf(out, "%s0x%" PRIx64, module[0] != '\0' ? "+" : "", place->offset);
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
