// SPDX-License-Identifier: MIT
#include "views_json/layout/csv_cell.h"

#include <stdbool.h>
#include <string.h>

void csv_write_text(FILE *out, const char *text)
{
    const char *quote = strpbrk(text, ",\"") != NULL ? "\"" : "";
    const char *guard = text[0] != '\0' && strchr("=+-@", text[0]) != NULL ? "'" : "";
    (void)fprintf(out, "%s%s", quote, guard); // the owner of the stream checks it
    for (const char *at = text; *at != '\0'; at++) {
        const unsigned char byte = (unsigned char)*at;
        const bool is_control = byte < 0x20 || byte == 0x7f;
        (void)fputs(byte == '"' ? "\"" : "", out);
        (void)fputc(is_control ? ' ' : byte, out);
    }
    (void)fputs(quote, out);
}
