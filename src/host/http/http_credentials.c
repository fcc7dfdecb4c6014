// SPDX-License-Identifier: MIT
#include "host/http/http_credentials.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/os/new_file.h"
#include "host/text/strbuf.h"

enum {
    CREDENTIALS_MAX_BYTES = 8192
};

// A control character would end the header of the request.
static bool is_one_line(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == '\x7f') {
            return false;
        }
    }
    return text[0] != '\0';
}

enum err http_credentials_read(
    const char *path, const char *variable, const char *option, char **out, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    const char *value = getenv(variable);
    if (path != NULL) {
        TRY(file_read_trusted(path, CREDENTIALS_MAX_BYTES, &text, info));
        const size_t len = strlen(strbuf_text(&text));
        const bool has_zero = len != text.len;
        strbuf_truncate(&text, strcspn(strbuf_text(&text), "\r\n"));
        if (has_zero || !is_one_line(strbuf_text(&text))) {
            return err_set(info, ERR_INVALID,
                           "%s: '%s' must have one line: a token or USER:PASSWORD", option, path);
        }
    } else if (value == NULL || value[0] == '\0') {
        *out = NULL;
        return ERR_OK;
    } else {
        strbuf_append_text(&text, value);
        if (!is_one_line(value)) {
            return err_set(info, ERR_INVALID, "%s must be one line: a token or USER:PASSWORD",
                           variable);
        }
    }
    char *copy = strbuf_take(&text);
    if (copy == NULL) {
        return ERR_NO_MEMORY;
    }
    (void)unsetenv(variable); // fails only for a name with '='
    *out = copy;
    return ERR_OK;
}
