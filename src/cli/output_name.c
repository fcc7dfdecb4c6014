// SPDX-License-Identifier: MIT
// output_name: default names and patterns. See output_name.h.
#include "cli/output_name.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "cli/screen_text.h"

enum {
    PROGRAM_MAX_BYTES = 128
}; // leaves room below NAME_MAX for the rest of the name

void output_name_append_default(struct strbuf *out, const char *program)
{
    const char *name = screen_basename(program);
    strbuf_append_text(out, "cairn.");
    for (size_t i = 0; name[i] != '\0' && i < PROGRAM_MAX_BYTES; i++) {
        bool is_safe = isalnum((unsigned char)name[i]) || strchr("._+-", name[i]) != NULL;
        strbuf_append_char(out, (char)(is_safe ? name[i] : '_'));
    }
    strbuf_append_text(out, ".%p.cairn");
}

enum err output_name_expand(
    const char *pattern, uint32_t pid, const char *host, struct strbuf *out, struct err_info *info)
{
    for (const char *at = pattern; *at != '\0'; at++) {
        if (*at != '%') {
            strbuf_append_char(out, *at);
            continue;
        }
        at++;
        switch (*at) {
        case 'p':
            strbuf_printf(out, "%" PRIu32, pid);
            break;
        case 'h':
            strbuf_append_text(out, host);
            break;
        case '%':
            strbuf_append_char(out, '%');
            break;
        default:
            return err_set(info, ERR_INVALID,
                           "--output: in \"%.200s\", %% must be followed by p, h or %%", pattern);
        }
    }
    return strbuf_result(out);
}
