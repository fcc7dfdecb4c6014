// SPDX-License-Identifier: MIT
// csv_text: see csv_text.h.
#include "formats/codec/csv_text.h"

#include <string.h>

void csv_write_text(FILE *out, const char *text)
{
    const char *guard = text[0] != '\0' && strchr("=+-@", text[0]) != NULL ? "'" : "";
    if (strpbrk(text, ",\"") == NULL) {
        (void)fprintf(out, "%s%s", guard, text);
        return;
    }
    (void)fprintf(out, "\"%s", guard);
    for (; *text != '\0'; text++) {
        (void)fputs(*text == '"' ? "\"" : "", out);
        (void)fputc(*text, out);
    }
    (void)fputc('"', out);
}
